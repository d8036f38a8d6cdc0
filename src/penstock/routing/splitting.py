"""Frequent keys cut into parts in proportion to their frequency (Balkesen et al. 2013, s. 4.1)."""

from dataclasses import dataclass

import numpy as np

from penstock.errors import InvalidInput
from penstock.model.observation import Floats, Ints
from penstock.routing.frequent_keys import KeyCounts
from penstock.routing.hashing import Hashes, part_hashes
from penstock.routing.ring import Ring

MOST_PARTS = 1_000_000


@dataclass(frozen=True)
class SplitRule:
    """How many keys are split, how finely, and where their parts go.

    `parts_per_node`: a part has the mean load of a node divided by this; None: a part has the
    rows of the last of the K keys, the finest cut that keeps p_i in proportion.
    `load_bound`: a part goes to the first node after its hash that stays within (1 + load_bound)
    times the mean load; None: to the first, as in the paper.
    Differs from Balkesen et al. 2013, s. 4.1: parts avoid full nodes (after Mirrokni et al. 2018)
    by default.
    """

    top_k: int = 100
    parts_per_node: float | None = 32.0
    load_bound: float | None = 0.05

    def __post_init__(self) -> None:
        if self.top_k < 0:
            raise InvalidInput(f"top_k is {self.top_k}; give 0 or more.")
        if self.parts_per_node is not None and not 0 < self.parts_per_node <= 1000:
            raise InvalidInput(f"parts_per_node is {self.parts_per_node}; give 0 to 1000.")
        if self.load_bound is not None and not self.load_bound > 0:
            raise InvalidInput(f"load_bound is {self.load_bound}; give more than 0.")


PAPER_RULE = SplitRule(parts_per_node=None, load_bound=None)


@dataclass(frozen=True)
class Splits:
    """The K keys with their parts; `part_nodes` holds the nodes of one key after the other."""

    keys: KeyCounts
    parts: Ints
    part_nodes: Ints


def split_keys(
    keys: KeyCounts, ring: Ring, rule: SplitRule, other_rows: Floats | None = None
) -> Splits:
    """Cut the K most frequent keys and choose a node for each part.

    `other_rows` are the rows each node (in the ring's order) gets of keys beyond the K; None:
    they are taken to be in proportion to the nodes' shares of the ring.
    """
    top = keys.top(rule.top_k)
    parts = part_numbers(top, len(ring.nodes), rule)
    split = parts > 1
    nodes = ring.routes(top.hashes)
    cut = KeyCounts(
        tuple(label for label, is_split in zip(top.labels, split, strict=True) if is_split),
        top.hashes[split], top.counts[split], top.total_rows,
    )  # fmt: skip
    if rule.load_bound is None:
        placed = ring.routes(part_hashes(cut.hashes, parts[split]))
    else:
        if other_rows is None:
            other_rows = ring.shares * max(0.0, keys.total_rows - float(top.counts.sum()))
        whole = np.zeros(len(ring.nodes))
        np.add.at(whole, ring.places(nodes[~split]), top.counts[~split])
        placed = _within_bound(cut, parts[split], ring, rule.load_bound, other_rows + whole)
    part_nodes = np.repeat(nodes, parts)
    part_nodes[np.repeat(split, parts)] = placed
    return Splits(top, parts, part_nodes)


def part_numbers(top: KeyCounts, nodes: int, rule: SplitRule) -> Ints:
    """p_i = max(1, round(f_i / u)): f_i is the key's frequency, u the frequency of one part."""
    frequent = top.counts[top.counts > 0]
    if frequent.size == 0:
        return np.ones(len(top.counts), dtype=np.int64)
    if rule.parts_per_node is None:
        unit = float(frequent[-1])
    else:
        unit = top.total_rows / (nodes * rule.parts_per_node)
    unit = max(unit, 1.0, float(frequent.sum()) / MOST_PARTS)
    return np.maximum(1, np.rint(top.counts / unit)).astype(np.int64)


def _within_bound(
    cut: KeyCounts, parts: Ints, ring: Ring, load_bound: float, other_rows: Floats
) -> Ints:
    """The first node after each part's hash with room for it, largest parts first.

    A part of more than load_bound times the mean may find no room; then it goes to the node with
    least load.
    """
    load = [float(rows) for rows in other_rows]
    total = sum(load) + float(cut.counts.sum())
    most = (1 + load_bound) * total / len(load)
    sizes = np.repeat(cut.counts / parts, parts).tolist()
    starts = _first_points(part_hashes(cut.hashes, parts), ring)
    circle = ring.places(ring.point_nodes).tolist()
    nodes = [0] * len(sizes)
    for part in sorted(range(len(sizes)), key=lambda number: -sizes[number]):
        size, point, seen = sizes[part], starts[part], 0
        while load[circle[point]] + size > most and seen < len(circle):
            point, seen = (point + 1) % len(circle), seen + 1
        place = circle[point] if seen < len(circle) else load.index(min(load))
        load[place] += size
        nodes[part] = ring.nodes[place]
    return np.array(nodes, dtype=np.int64)


def _first_points(hashes: Hashes, ring: Ring) -> list[int]:
    found = np.searchsorted(ring.points, hashes) % len(ring.points)
    return [int(point) for point in found]
