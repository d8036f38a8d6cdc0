"""Who is late shares what is left: the latest first, until nothing helps or nothing is left.

That is the max-min division: the largest lateness is as small as it can be, then the next largest.
"""

from heapq import heapify, heappop, heappush

import numpy as np

from penstock.sharing.claims import Claims, Floats, Ints


def filled(claims: Claims, extra: Ints, late: Ints, room: int) -> Ints:
    """Processors beyond the minimum, with `room` more for those of `late`, which are places."""
    extra = extra.copy()
    if len(late) and room > 0:
        lateness = claims.lateness[late]
        levelled = _levelled(lateness, extra[late], room)
        room -= int((levelled - extra[late]).sum())
        extra[late] = _one_by_one(lateness, levelled, room)
    return extra


def _levelled(lateness: Floats, extra: Ints, room: int) -> Ints:
    """All of them below one lateness, the lowest there is room for; the rest is step by step."""
    best = lateness[:, -1:]
    levels = np.unique(lateness[np.isfinite(lateness)])
    low, high = 0, len(levels)
    found = extra
    while low < high:
        middle = (low + high) // 2
        reached = np.maximum(extra, (lateness > np.maximum(best, levels[middle])).sum(axis=1))
        if int((reached - extra).sum()) <= room:
            found, high = reached, middle
        else:
            low = middle + 1
    return np.asarray(found, dtype=np.int64)


def _one_by_one(lateness: Floats, extra: Ints, room: int) -> Ints:
    """Always the latest, one step that helps it; the cheapest step of several that are as late."""
    extra = extra.copy()
    falling = -lateness

    def step(place: int) -> tuple[float, int, int]:
        now = falling[place, extra[place]]
        to = int(np.searchsorted(falling[place], now, side="right"))
        return float(now), to - int(extra[place]), place

    queue = [step(place) for place in range(len(extra))]
    heapify(queue)
    while queue and room > 0:
        _, cost, place = heappop(queue)
        if cost <= room and extra[place] + cost < lateness.shape[1]:
            extra[place] += cost
            room -= cost
            heappush(queue, step(place))
    return extra
