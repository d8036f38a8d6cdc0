"""Operators parallelised one by one and their instances placed by a sparse cut (COLA's baseline).

Guo and Zhou 2017, s. 1 and 6.1, compare with this: every operator has its own key and parallelism,
the graph of instances is cut into as many parts as there are nodes, and a row stays local only when
the instances at both ends of its stream happen to share a node.
"""

from dataclasses import dataclass

import numpy as np

from penstock.fusion.costs import Costs
from penstock.fusion.sparse_cut import balanced_cut
from penstock.model.observation import Floats


@dataclass(frozen=True)
class Placement:
    """What a placement of instances costs over all windows, in rows."""

    communication_cost: float
    adaptation_cost: float
    instances: int


def place_instances(costs: Costs, nodes: int) -> Placement:
    """Cut the graph of instances; every operator rebalances its own key groups.

    An operator has ceil(mean load / capacity) instances that hold its hashed key groups. Keys
    differ, so a stream's rows go from instance i to j in proportion to both their loads:
    rows x share_i x share_j.
    """
    graph = costs.graph
    shares = [_instance_shares(rows, costs.rule.capacity_rows) for rows in graph.input_rows]
    first = np.concatenate([[0], np.cumsum([len(share) for share in shares])])
    ends, others, rows = [], [], []
    for up, down, sent in zip(graph.upstream, graph.downstream, graph.stream_rows, strict=True):
        one, other = np.meshgrid(
            np.arange(first[up], first[up + 1]), np.arange(first[down], first[down + 1])
        )
        ends.append(one.ravel())
        others.append(other.ravel())
        rows.append(sent * np.outer(shares[down], shares[up]).ravel())
    loads = graph.input_rows.sum(axis=(1, 2))
    vertex_rows = np.concatenate([load * share for load, share in zip(loads, shares, strict=True)])
    alone = costs.adaptation([1 << position for position in range(graph.size)])
    if not ends:
        return Placement(0.0, float(alone.sum()), int(first[-1]))
    end, other_end, sent_rows = np.concatenate(ends), np.concatenate(others), np.concatenate(rows)
    node = balanced_cut(end, other_end, sent_rows, vertex_rows, nodes)
    crossing = float(sent_rows[node[end] != node[other_end]].sum())
    return Placement(crossing, float(alone.sum()), int(first[-1]))


def _instance_shares(input_rows: Floats, capacity_rows: float) -> Floats:
    """The share of an operator's load on each of its instances, key groups hashed over them."""
    windows, groups = input_rows.shape
    per_group = input_rows.sum(axis=0)
    total = float(per_group.sum())
    count = int(np.clip(np.ceil(total / windows / capacity_rows), 1, groups))
    if total <= 0:
        return np.full(count, 1 / count)
    return np.bincount(np.arange(groups) % count, per_group, count) / total
