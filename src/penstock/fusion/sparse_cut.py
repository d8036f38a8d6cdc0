"""Groups of operators by a sparse, balanced cut of the graph: COLA's baseline, cut by METIS."""

import numpy as np
import pymetis

from penstock.fusion.costs import Costs, FusionLimits
from penstock.fusion.graph import OperatorGraph
from penstock.fusion.members import Members, members_of, positions_of
from penstock.model.observation import Floats, Ints

OPERATORS_PER_GROUP = 8  # of a group when no component size is asked for
_WEIGHTS = 10_000  # METIS takes whole numbers; the heaviest edge and vertex become this


def balanced_cut(
    ends: Ints, others: Ints, edge_rows: Floats, vertex_rows: Floats, parts: int
) -> Ints:
    """The part of each vertex, so that parts weigh about the same and few rows cross."""
    vertices = len(vertex_rows)
    if parts <= 1 or vertices <= 1:
        return np.zeros(vertices, dtype=np.int64)
    order = np.argsort(np.concatenate([ends, others]), kind="stable")
    adjacent = np.concatenate([others, ends])[order]
    weights = _whole(np.concatenate([edge_rows, edge_rows])[order])
    degrees = np.bincount(np.concatenate([ends, others]), minlength=vertices)
    starts = np.concatenate([[0], np.cumsum(degrees)])
    _, part = pymetis.part_graph(
        min(parts, vertices),
        pymetis.CSRAdjacency(starts.tolist(), adjacent.tolist()),
        eweights=weights.tolist(),
        vweights=_whole(vertex_rows).tolist(),
        options=pymetis.Options(seed=0),
    )
    return np.array(part, dtype=np.int64)


def _whole(rows: Floats) -> Ints:
    heaviest = float(rows.max(initial=0.0)) or 1.0
    return np.maximum(1, np.round(rows / heaviest * _WEIGHTS)).astype(np.int64)


def operator_groups(graph: OperatorGraph, parts: int) -> list[Members]:
    """The operators of each part, whatever their keys."""
    linked = [(u, d, rows) for u, links in enumerate(graph.links) for d, rows in links.items()]
    once = [(u, d, rows) for u, d, rows in linked if u < d]
    part = balanced_cut(
        np.array([u for u, _, _ in once], dtype=np.int64),
        np.array([d for _, d, _ in once], dtype=np.int64),
        np.array([rows for _, _, rows in once], dtype=np.float64),
        graph.input_rows.sum(axis=(1, 2)),
        parts,
    )
    return [members_of(np.flatnonzero(part == number).tolist()) for number in np.unique(part)]


def sparse_cut(costs: Costs, limits: FusionLimits) -> tuple[list[Members], str]:
    """COLA's grouping made into a plan: METIS cuts, then keys decide what of a group is fused.

    The cut knows only loads, as in COLA (Guo and Zhou 2017, s. 6.1). A group whose operators share
    no key cannot be partitioned as one, so it is taken apart along its heaviest streams into
    components.
    """
    graph = costs.graph
    size = limits.max_component_size or OPERATORS_PER_GROUP
    groups = operator_groups(graph, -(-graph.size // size))
    components: list[Members] = []
    for group in groups:
        components += _fused_within(costs, group, limits)
    note = f"METIS cut {graph.size} operators into {len(groups)} groups of about equal load"
    return components, note


def _fused_within(costs: Costs, group: Members, limits: FusionLimits) -> list[Members]:
    """Join along streams, heaviest first, while the keys stay compatible and the limits hold."""
    graph = costs.graph
    home: dict[int, Members] = {p: 1 << p for p in positions_of(group)}
    streams = sorted(
        (-rows, up, down)
        for up in home
        for down, rows in graph.links[up].items()
        if up < down and down in home
    )
    largest = limits.max_component_size or graph.size
    for _, up, down in streams:
        joined = home[up] | home[down]
        if home[up] == home[down] or joined.bit_count() > largest:
            continue
        if graph.shared_key_bits(joined) and costs.within([joined], limits)[0]:
            home.update(dict.fromkeys(positions_of(joined), joined))
    return list(dict.fromkeys(home.values()))
