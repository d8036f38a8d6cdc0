"""Enumeration of components, level by level, that stops before it explodes.

Guo and Zhou 2017, s. 5.2.
"""

from dataclasses import dataclass

from penstock.fusion.graph import OperatorGraph
from penstock.fusion.members import Members, positions_of


@dataclass(frozen=True)
class Enumeration:
    """All components of up to `size` operators; `complete` when there are no larger ones."""

    components: tuple[Members, ...]
    size: int
    complete: bool


def enumerate_components(
    graph: OperatorGraph, max_size: int | None = None, max_count: int = 20_000
) -> Enumeration:
    """Every component up to a size, whole sizes only, at most `max_count` beyond the singletons.

    A component of s + 1 operators has one of s inside it (drop an operator that does not hold it
    together; a subset of compatible operators is compatible), so growing each component of size s
    by each compatible neighbour finds all of size s + 1. A size that would exceed the count is
    left out as a whole, so the limit can be stated as a size.

    Differs from Guo and Zhou 2017, s. 5.2: the limit k of Enumerate(G, k) is found from the count.
    """
    level: dict[Members, int] = {1 << p: bits for p, bits in enumerate(graph.key_bits)}
    reach: dict[Members, Members] = {1 << p: graph.neighbours[p] for p in range(graph.size)}
    found: list[Members] = list(level)
    size = 1
    while level and (max_size is None or size < max_size):
        grown: dict[Members, int] = {}
        grown_reach: dict[Members, Members] = {}
        for members, shared in level.items():
            reached = reach[members]
            for position in positions_of(reached & ~members):
                common = shared & graph.key_bits[position]
                larger = members | 1 << position
                if common and larger not in grown:
                    grown[larger] = common
                    grown_reach[larger] = reached | graph.neighbours[position]
            if len(found) - graph.size + len(grown) > max_count:
                return Enumeration(tuple(found), size, complete=False)
        if not grown:
            return Enumeration(tuple(found), size, complete=True)
        found.extend(grown)
        level, reach = grown, grown_reach
        size += 1
    return Enumeration(tuple(found), size, complete=not _grows(graph, level, reach))


def _grows(graph: OperatorGraph, level: dict[Members, int], reach: dict[Members, Members]) -> bool:
    return any(
        shared & graph.key_bits[position]
        for members, shared in level.items()
        for position in positions_of(reach[members] & ~members)
    )
