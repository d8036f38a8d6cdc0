"""Baselines: hash(key) modulo the number of nodes, and the power of two choices.

With two choices each row goes to the less loaded of its key's two nodes, after Nasir et al. 2015
(partial key grouping). A key is on at most two nodes, so a key with more than two nodes' worth of
rows still overloads both.
"""

import numpy as np

from penstock.model.observation import Floats, Ints
from penstock.routing.hashing import Hashes, mixed


def plain_hash_routes(hashes: Hashes, nodes: int) -> Ints:
    """The node of each row. Nearly every key moves when `nodes` changes."""
    return (hashes % np.uint64(nodes)).view(np.int64)


def candidates(hashes: Hashes, nodes: int) -> tuple[Ints, Ints]:
    """The two nodes of each key; different ones if there are two."""
    first = (hashes % np.uint64(nodes)).view(np.int64)
    if nodes == 1:
        return first, first
    step = 1 + (mixed(hashes) % np.uint64(nodes - 1)).view(np.int64)
    return first, (first + step) % nodes


def two_choices_routes(hashes: Hashes, load_rows: Floats) -> tuple[Ints, Floats]:
    """The node of each row of a batch, and the rows each node then has.

    A key's rows of a batch are dealt together, frequent keys first, to level its two nodes.
    """
    keys, classes, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    first, second = candidates(keys, len(load_rows))
    to_first, load = two_choices_counts(counts, first, second, load_rows)
    order = np.argsort(classes, kind="stable")
    starts = np.cumsum(counts) - counts
    rank = np.empty(len(hashes), dtype=np.int64)
    rank[order] = np.arange(len(hashes)) - np.repeat(starts, counts)
    return np.where(rank < to_first[classes], first[classes], second[classes]), load


def two_choices_counts(
    counts: Ints, first: Ints, second: Ints, load_rows: Floats
) -> tuple[Ints, Floats]:
    """How many rows of each key its first node gets, and the rows each node then has."""
    load: list[float] = np.asarray(load_rows, dtype=np.float64).tolist()
    to_first = [0] * len(counts)
    order = np.argsort(-counts, kind="stable").tolist()
    ones, twos, numbers = first.tolist(), second.tolist(), counts.tolist()
    for key in order:
        one, two, rows = ones[key], twos[key], numbers[key]
        levelled = int(rows + load[two] - load[one] + 1) // 2
        mine = rows if one == two else min(rows, max(0, levelled))
        to_first[key] = mine
        load[one] += mine
        load[two] += rows - mine
    return np.array(to_first, dtype=np.int64), np.array(load)
