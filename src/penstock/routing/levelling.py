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
    reached = np.append(ascending[1:], np.inf) >= levels
    height = levels[np.argmax(reached)]
    dealt: Ints = np.maximum(np.floor((height - load) / cost), 0).astype(np.int64)
    left = rows - int(dealt.sum())
    while left > 0:
        lowest = np.argsort(load + dealt * cost, kind="stable")[: min(left, nodes)]
        dealt[lowest] += 1
        left -= len(lowest)
    while left < 0:  # rounding at the very edge of a float gave one too many
        highest = np.argmax(np.where(dealt > 0, load + dealt * cost, -np.inf))
        dealt[highest] -= 1
        left += 1
    return dealt
