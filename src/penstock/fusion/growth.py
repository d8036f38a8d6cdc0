"""Large components, grown along the heaviest streams, where enumeration cannot reach."""

import heapq

from penstock.fusion.graph import OperatorGraph
from penstock.fusion.members import Members

SIZES = (4, 6, 8, 12, 16, 24, 32, 48, 64)  # kept on the way; close sizes differ little


def grown_components(graph: OperatorGraph, max_size: int | None = None) -> list[Members]:
    """From each operator and each attribute of its key, the components met while growing.

    A component grows by the neighbour that has the attribute and exchanges most rows with it.
    Those of the sizes above are kept, and the last one; at most ten for each start.
    """
    bit = {one: 1 << number for number, one in enumerate(graph.attributes)}
    found: dict[Members, None] = {}
    largest = min(max_size or SIZES[-1], SIZES[-1])
    for start, own in enumerate(graph.choices):
        for attribute in own:
            found.update(dict.fromkeys(_grow(graph, start, bit[attribute], largest)))
    return list(found)


def _grow(graph: OperatorGraph, start: int, attribute: int, largest: int) -> list[Members]:
    members, size = 0, 0
    between: dict[int, float] = {start: 0.0}
    heap = [(0.0, start)]
    kept = []
    while heap and size < largest:
        _, position = heapq.heappop(heap)
        if members >> position & 1:
            continue  # a stale entry: it came in by a heavier one
        members |= 1 << position
        size += 1
        if size in SIZES:
            kept.append(members)
        for other, rows in graph.links[position].items():
            if graph.key_bits[other] & attribute and not members >> other & 1:
                between[other] = between.get(other, 0.0) + rows
                heapq.heappush(heap, (-between[other], other))
    return kept if kept and kept[-1] == members else [*kept, members]
