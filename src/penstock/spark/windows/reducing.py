"""Reductions over groups and over ranges of entries, without a loop over either."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.model.observation import Ints

Column = NDArray[Any]


def by_group(op: Any, values: Column, group: Ints, groups: int, start: Any) -> Column:
    """op over the values of each group, beginning with `start`."""
    found = np.full((groups, *values.shape[1:]), start, dtype=values.dtype)
    op.at(found, group, values)
    return found


def over_ranges(op: Any, values: Column, low: Ints, high: Ints, start: Any) -> Column:
    """op over values[low:high] for each pair, by powers of two.

    Nothing is ever subtracted, so sums of floats lose no more than additions in another order do,
    and a NaN stays in the ranges it belongs to.

    >>> over_ranges(np.add, np.array([1.0, 2.0, 4.0]), np.array([0, 1]), np.array([3, 2]), 0.0)
    array([7., 2.])
    """
    length = high - low
    at = low.copy()
    found = np.full((len(low), *values.shape[1:]), start, dtype=values.dtype)
    level, step = values, 1
    while step <= int(length.max(initial=0)):
        chosen = np.flatnonzero(length & step)
        if len(chosen) == len(length):
            found = op(found, level[at])
            at += step
        elif len(chosen):
            found[chosen] = op(found[chosen], level[at[chosen]])
            at[chosen] += step
        level = op(level[:-step], level[step:]) if len(level) > step else level
        step *= 2
    return found


def differences(values: NDArray[np.int64], low: Ints, high: Ints) -> NDArray[np.int64]:
    """Sums of integers over ranges; exact modulo 2**64, so exact whenever they fit."""
    total = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, out=total[1:])
    return np.asarray(total[high] - total[low])
