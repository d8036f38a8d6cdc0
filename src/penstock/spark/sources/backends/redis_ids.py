"""Positions in Redis streams: the least id not yet read, and how many entries came before it.

An id is two whole numbers, ms-seq. The number of entries that were ever added before a position is
kept beside it, because ids alone cannot tell whether entries between two of them were trimmed
before they were read: the server counts what was added and what is left, and so what is gone.

    major = ms << 20 | seq >> 20        ms < 2**43 (the year 2248)
    minor = seq << 43 | number          seq < 2**40, number < 2**43, of seq the lower 20 bits
"""

import numpy as np

from penstock.model.observation import Floats, Ints
from penstock.spark.sources.backends.backend import Positions

MS_BITS, SEQ_BITS, NUMBER_BITS = 43, 40, 43
LOW_BITS = 20  # of seq, in minor
LOW_MASK = (1 << LOW_BITS) - 1
NUMBER_MASK = (1 << NUMBER_BITS) - 1
LEAST_CLOCK_MS = 10**12  # ids below were made by hand and hold no time


def packed(ms: Ints, seq: Ints, number: Ints) -> Positions:
    """Positions of ids and entry numbers within the bounds."""
    return Positions(ms << LOW_BITS | seq >> LOW_BITS, (seq & LOW_MASK) << NUMBER_BITS | number)


def holdable(ms: Ints, seq: Ints) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Which ids, and the ones after them, a position can hold."""
    return (ms >= 0) & (ms < 1 << MS_BITS) & (seq >= 0) & (seq < (1 << SEQ_BITS) - 1)


def unpacked(positions: Positions) -> tuple[Ints, Ints, Ints]:
    """ms, seq and number.

    >>> ms, seq, number = unpacked(packed(np.array([7]), np.array([3 << 20]), np.array([12])))
    >>> int(ms[0]), int(seq[0]) >> 20, int(number[0])
    (7, 3, 12)
    """
    high = positions.major & LOW_MASK
    low = positions.minor >> NUMBER_BITS
    return positions.major >> LOW_BITS, high << LOW_BITS | low, positions.minor & NUMBER_MASK


def texts(ms: Ints, seq: Ints) -> list[str]:
    """Ids as Redis writes them."""
    return [f"{a}-{b}" for a, b in zip(ms.tolist(), seq.tolist(), strict=True)]


def clock_s(ms: Ints) -> Floats:
    """Seconds since 1970 where the server made the id from its clock."""
    return np.where(ms >= LEAST_CLOCK_MS, ms / 1e3, np.nan)
