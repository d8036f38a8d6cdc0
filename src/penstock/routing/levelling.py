"""Equal rows dealt one by one to the least loaded node, for all rows at once."""

import numpy as np

from penstock.model.observation import Floats, Ints


def level(load: Floats, rows: int, cost: float) -> Ints:
    """How many of `rows` rows of one `cost` each node gets if each goes to the least loaded.

    The greedy choice takes the smallest `rows` of the numbers load_i + j cost (j = 0, 1, ...), so
    it fills all nodes to one level, and the rest goes one each to the lowest.

    >>> level(np.array([5.0, 0.0, 2.0]), 4, 1.0).tolist()
    [0, 3, 1]
    """
    nodes = len(load)
    if cost <= 0:
        return rows // nodes + (np.arange(nodes) < rows % nodes).astype(np.int64)
    ascending = np.sort(load)
    # With the k lowest nodes at one level, the level is (what they have + what comes) / k.
    levels = (np.cumsum(ascending) + rows * cost) / np.arange(1, nodes + 1)
    filled = int(np.argmax(np.append(ascending[1:], np.inf) >= levels))
    with np.errstate(over="ignore"):
        share = np.clip((levels[filled] - load) / cost, 0, rows)
    dealt: Ints = np.floor(share).astype(np.int64)
    return _completed(dealt, rows, load, cost, filled + 1)


def _completed(dealt: Ints, rows: int, load: Floats, cost: float, filled: int) -> Ints:
    """All rows dealt: one more each for the lowest nodes, whatever floats have rounded away."""
    left = rows - int(dealt.sum())
    order = np.argsort(load + dealt * cost, kind="stable")
    if left > 0:
        dealt[order[:filled]] += left // filled
        dealt[order[: left % filled]] += 1
        return dealt
    for node in order[::-1].tolist():  # rounded up, where a cost is tiny beside the loads
        taken = min(-left, int(dealt[node]))
        dealt[node] -= taken
        left += taken
    return dealt
