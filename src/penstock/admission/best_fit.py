"""Best fit into lanes, as one would do it stream by stream, but in runs.

Balkesen et al. 2013, s. 2.1, ref. [6].

Each item goes to the lane with the least room that still has enough; if none has, a new lane is
opened. Given in decreasing order of size this is BFD, and then two heaps suffice: `open` lanes
have room for the present item, least room first; `shut` ones do not, most room first. As items
shrink, lanes only pass from shut to open, and from open to shut by being filled. A lane also takes
a whole run of items, found by bisection in the running sum, for as long as no shut lane opens and
the run fits: with many small streams the cost grows with lanes, not with streams.

The order may also be another than by size; then items are placed one at a time from a sorted list.
"""

from bisect import bisect_left, bisect_right, insort
from heapq import heapify, heappop, heappush

import numpy as np

from penstock.model.observation import Ints


def best_fit(sizes: Ints, room: Ints, new_room: int) -> Ints:
    """The bin of each item, in the order given; bins of `len(room)` and more are new.

    An item larger than `new_room` gets a bin to itself, one of the empty ones if there are any.

    >>> best_fit(np.array([6, 5, 4, 3]), np.array([5]), 10).tolist()
    [1, 0, 1, 2]
    """
    if len(sizes) == 0:
        return np.empty(0, dtype=np.int64)
    over = sizes > new_room
    bins = np.empty(len(sizes), dtype=np.int64)
    fitting = sizes[~over]
    if len(fitting) and (np.diff(fitting) > 0).any():
        placed, count = _one_by_one(fitting.tolist(), room.tolist(), new_room)
    else:
        placed, count = _in_runs(fitting, room.tolist(), new_room)
    bins[~over] = placed
    if over.any():
        empty = np.setdiff1d(np.flatnonzero(room >= new_room), placed)
        bins[over] = np.append(empty, count + np.arange(len(sizes)))[: int(over.sum())]
    return bins


def _in_runs(sizes: Ints, room: list[int], new_room: int) -> tuple[Ints, int]:
    """For sizes that never grow; returns the bins and their number."""
    bins = np.empty(len(sizes), dtype=np.int64)
    count = len(room)
    size = sizes.tolist()
    before = np.concatenate(([0], np.cumsum(sizes))).tolist()
    falling = [-value for value in size]
    at, end = 0, len(size)
    largest = size[0] if size else 0
    open_lanes = [(free, lane) for lane, free in enumerate(room) if free >= largest]
    shut = [(-free, lane) for lane, free in enumerate(room) if free < largest]
    heapify(open_lanes)
    heapify(shut)
    starts, owners = [], []
    while at < end:
        item = size[at]
        while shut and -shut[0][0] >= item:
            free, lane = heappop(shut)
            heappush(open_lanes, (-free, lane))
        if open_lanes:
            free, lane = heappop(open_lanes)
        else:
            free, lane, count = new_room, count, count + 1
        # Items that fit in a row, and are larger than the most room among the shut lanes.
        stop = bisect_right(before, before[at] + free, at + 1, end + 1) - 1
        if shut and stop > at + 1:
            stop = max(at + 1, bisect_left(falling, shut[0][0], at + 1, stop))
        starts.append(at)
        owners.append(lane)
        left = free - (before[stop] - before[at])
        at = stop
        if at < end and left >= size[at]:
            heappush(open_lanes, (left, lane))
        else:
            heappush(shut, (-left, lane))
    lengths = np.diff(np.append(starts, end)) if starts else np.empty(0, dtype=np.int64)
    bins[:] = np.repeat(np.array(owners, dtype=np.int64), lengths.astype(np.int64))
    return bins, count


def _one_by_one(sizes: list[int], room: list[int], new_room: int) -> tuple[Ints, int]:
    free = sorted((left, lane) for lane, left in enumerate(room))
    count = len(room)
    bins = []
    for size in sizes:
        place = bisect_left(free, (size, -1))
        if place < len(free):
            left, lane = free.pop(place)
        else:
            left, lane, count = new_room, count, count + 1
        bins.append(lane)
        insort(free, (left - size, lane))
    return np.array(bins, dtype=np.int64), count
