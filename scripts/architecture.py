"""Draws the rooms and who imports whom into docs/architecture.md, from the imports of the code."""

import sys
from pathlib import Path

import grimp
import networkx as nx

PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
HOUSES = {"penstock": "rooms", "penstock.spark": "rooms of spark"}


def imports_between_rooms(house: str) -> "nx.DiGraph[str]":
    """An edge from each room of a house to each other room that any of its modules imports."""
    modules = grimp.build_graph("penstock")
    rooms = sorted(modules.find_children(house))
    drawn: nx.DiGraph[str] = nx.DiGraph()
    drawn.add_nodes_from(room.rpartition(".")[2] for room in rooms)
    home = {
        module: room.rpartition(".")[2]
        for room in rooms
        for module in (room, *modules.find_descendants(room))
    }
    for module in home:
        for imported in modules.find_modules_directly_imported_by(module):
            if imported in home and home[imported] != home[module]:
                drawn.add_edge(home[module], home[imported])
    return drawn


def picture(house: str) -> str:
    """The rooms as a Mermaid chart; an import that follows from others is left out."""
    graph = imports_between_rooms(house)
    whole = nx.condensation(graph)  # rooms that import each other stand side by side
    lines = ["```mermaid", "flowchart TD"]
    members = {node: sorted(whole.nodes[node]["members"]) for node in whole}
    names = {node: "_".join(rooms) for node, rooms in members.items()}
    lines += [
        f'    {names[node]}["{", ".join(rooms)}"]'
        for node, rooms in sorted(members.items(), key=lambda item: item[1])
        if whole.degree(node)
    ]
    reduced = nx.transitive_reduction(whole)
    edges = sorted((names[above], names[below]) for above, below in reduced.edges)
    lines += [f"    {above} --> {below}" for above, below in edges]
    return "\n".join([*lines, "```"])


def drawn(text: str) -> str:
    """The page with its pictures as the code is now."""
    for house, mark in HOUSES.items():
        begin, end = f"<!-- {mark} -->\n", f"\n<!-- end of {mark} -->"
        if begin not in text or end not in text.partition(begin)[2]:
            raise SystemExit(
                f"{PAGE.name} has no place for the picture of {house}: {begin.strip()}"
            )
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = f"{before}{begin}{picture(house)}{end}{after}"
    return text


if __name__ == "__main__":
    made = drawn(PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(made, encoding="utf-8")
    sys.stderr.write(f"{PAGE.name}: pictures of {', '.join(HOUSES)}\n")
