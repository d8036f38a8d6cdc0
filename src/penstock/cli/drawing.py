"""A graph of operators with its components in colours."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
import networkx as nx

matplotlib.use("agg")

from matplotlib import colormaps
from matplotlib.figure import Figure


def draw_components(
    title: str,
    edges: Sequence[tuple[str, str]],
    components: Mapping[str, Sequence[str]],
    file: Path,
) -> None:
    """Sources left, sinks right; streams between components, which cross a shuffle, are dashed."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_edges_from(edges)
    for members in components.values():
        graph.add_nodes_from(members)
    for layer, nodes in enumerate(nx.topological_generations(graph)):
        for node in nodes:
            graph.nodes[node]["layer"] = layer
    place = nx.multipartite_layout(graph, subset_key="layer")
    home = {node: name for name, members in components.items() for node in members}
    layers = 1 + max((data["layer"] for _, data in graph.nodes(data=True)), default=0)
    widest = max((len(nodes) for nodes in nx.topological_generations(graph)), default=1)
    figure = Figure(figsize=(2 + 1.8 * layers, 2 + 0.9 * widest), layout="constrained")
    axes = figure.subplots()
    palette = colormaps["tab20"]
    for number, (name, members) in enumerate(components.items()):
        shown = [node for node in members if node in graph]
        nx.draw_networkx_nodes(
            graph, place, nodelist=shown, node_color=[palette(number % 20)] * len(shown),
            node_size=900, label=name, ax=axes,
        )  # fmt: skip
    others = [node for node in graph if node not in home]
    nx.draw_networkx_nodes(
        graph, place, nodelist=others, node_color="white", edgecolors="grey", node_size=900, ax=axes
    )
    inside = [edge for edge in graph.edges if home.get(edge[0]) == home.get(edge[1], edge)]
    between = [edge for edge in graph.edges if edge not in inside]
    nx.draw_networkx_edges(graph, place, edgelist=inside, width=2, node_size=900, ax=axes)
    nx.draw_networkx_edges(graph, place, edgelist=between, style="dashed", node_size=900, ax=axes)
    nx.draw_networkx_labels(graph, place, font_size=8, ax=axes)
    axes.set_title(title)
    axes.set_axis_off()
    axes.margins(0.12)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.02), fontsize=7, markerscale=0.4)
    figure.savefig(file, dpi=150)
