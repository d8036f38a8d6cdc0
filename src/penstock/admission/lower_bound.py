"""The fewest lanes any plan could do with: proven lower bounds of bin packing.

L2 of Martello and Toth (1990): for each threshold a of at most half a bin,

    L(a) = |J1| + |J2| + max(0, ceil((sum J3 - (|J2| C - sum J2)) / C))

where J1 holds items above C - a, J2 those in (C/2, C - a], J3 those in [a, C/2]: no two items of
J1 and J2 share a bin, and nothing of J3 fits beside an item of J1. Beside it the dual feasible
functions u_k of Fekete and Schepers (2001): with x = size / C,

    u_k(x) = x where (k + 1) x is whole, else floor((k + 1) x) / k,

and the sum of u_k over all items, rounded up, is a lower bound for every k >= 1. All in whole
numbers, so rounding proves nothing wrong. (The seed's ref. [17] improves L2 in a search for the
optimum; a bound is all that is needed here.)
"""

import numpy as np

from penstock.model.observation import Ints

DUAL_FUNCTIONS = range(1, 13)


def lower_bound(sizes: Ints, capacity: int) -> int:
    """No packing of the sizes has fewer bins; an item above the capacity takes a bin to itself.

    >>> lower_bound(np.array([6, 6, 6, 4, 4]), 10)
    3
    """
    oversize = int(np.count_nonzero(sizes > capacity))
    items = np.sort(sizes[(sizes <= capacity) & (sizes > 0)])
    if len(items) == 0:
        return oversize
    return oversize + max(_martello_toth(items, capacity), _dual_feasible(items, capacity))


def _martello_toth(items: Ints, capacity: int) -> int:
    """L2; thresholds other than the sizes themselves cannot give more."""
    count = len(items)
    total = np.concatenate(([0], np.cumsum(items)))
    half = int(np.searchsorted(items, capacity // 2, side="right"))  # items[half:] exceed half
    small = np.concatenate(([0], items[:half]))
    first = np.concatenate(([0], np.searchsorted(items, items[:half], side="left")))
    above = np.searchsorted(items, capacity - small, side="right")  # items[above:] are J1
    room_left = (above - half) * capacity - (total[above] - total[half])
    wanting = total[half] - total[first] - room_left
    extra = np.maximum(0, -(-wanting // capacity))
    return int((count - half + extra).max())


def _dual_feasible(items: Ints, capacity: int) -> int:
    best = 0
    for k in DUAL_FUNCTIONS:
        whole, rest = np.divmod(items * (k + 1), capacity)
        # Terms in units of 1 / (k capacity): x = k items, floor = whole * capacity.
        exact = rest == 0
        rounded = int(whole[~exact].sum())
        kept = int(items[exact].sum())
        units = k * kept + rounded * capacity
        best = max(best, -(-units // (k * capacity)))
    return best
