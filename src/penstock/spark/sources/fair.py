"""How many rows each stream may hand over: fair shares of what a lane can take (max-min)."""

import numpy as np

from penstock.model.observation import Ints


def fair_shares(waiting: Ints, lane: Ints, capacity: int, turn: int = 0) -> Ints:
    """Rows for each stream, at most `capacity` in each lane.

    No stream gets more than it has, and none gets more than another of its lane unless the other
    has all it asked for. Rows that do not divide evenly go round: `turn` moves who gets them.

    >>> fair_shares(np.array([5, 100, 100]), np.array([0, 0, 0]), 25).tolist()
    [5, 10, 10]
    """
    if len(waiting) == 0:
        return waiting.copy()
    total = np.bincount(lane, waiting)
    if total.max() <= capacity:
        return waiting.copy()
    shares = waiting.copy()
    tight = (total > capacity)[lane] & (waiting > 0)
    rows = np.flatnonzero(tight)
    order = rows[np.lexsort((waiting[rows], lane[rows]))]
    of, want = lane[order], waiting[order]
    first = np.concatenate(([True], of[1:] != of[:-1]))
    start = np.flatnonzero(first)
    group = np.cumsum(first) - 1
    place = np.arange(len(order)) - start[group]
    size = np.diff(np.append(start, len(order)))[group]
    before = np.cumsum(want) - want
    before -= before[start][group]
    # The level if this stream and all that want more were served alike.
    level = (capacity - before) / (size - place)
    served = want <= level
    # Streams are served in full from the smallest on; the first that is not sets the level.
    served &= (
        place == np.cumsum(served) - np.concatenate(([0], np.cumsum(served)))[start][group] - 1
    )
    count = np.add.reduceat(served, start)
    spent = np.add.reduceat(np.where(served, want, 0), start)
    rest = np.diff(np.append(start, len(order))) - count
    each = (capacity - spent) // np.maximum(rest, 1)
    extra = (capacity - spent) - each * rest
    open_place = place - count[group]
    lucky = np.mod(open_place - turn, np.maximum(rest[group], 1)) < extra[group]
    shares[order] = np.where(served, want, each[group] + lucky)
    return shares
