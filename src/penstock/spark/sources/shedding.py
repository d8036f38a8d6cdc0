"""Which rows a source drops: a sample by chance that comes out the same whenever it is drawn.

A row is dropped if a hash of its place in its stream is below the share. The place of a row never
changes, so a batch that is read again after a failure drops the same rows, and how many they are is
known without reading them. Places are counted modulo 2^64: some systems' positions use all 64 bits.
"""

import zlib

import numpy as np
from numpy.typing import NDArray

from penstock.model.observation import Ints

Bools = NDArray[np.bool_]


def seed_of(name: str) -> int:
    """A seed for a stream, so that streams are sampled independently of each other."""
    return zlib.crc32(name.encode())


def kept(first: int, count: int, share: float, seed: int) -> Bools:
    """Whether each of `count` rows from the place `first` on is kept."""
    places = np.arange(count, dtype=np.uint64) + np.uint64(first % 2**64)
    return ~_dropped(places, share, np.uint64(seed))


def dropped_rows(first: int, count: int, share: float, seed: int) -> int:
    """How many of those rows are dropped."""
    return int(count - kept(first, count, share, seed).sum()) if share > 0 else 0


def dropped_of_ranges(first: Ints, counts: Ints, share: float, seeds: Ints) -> int:
    """How many rows are dropped of many streams, each with a place, a count and a seed."""
    if share <= 0 or not len(counts):
        return 0
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    places = (np.repeat(first, counts) + within).astype(np.uint64)
    return int(_dropped(places, share, np.repeat(seeds, counts).astype(np.uint64)).sum())


def _dropped(
    place: NDArray[np.uint64], share: float, seed: NDArray[np.uint64] | np.uint64
) -> Bools:
    """The finaliser of SplitMix64 (Steele, Lea and Flood, 2014) as a number from 0 to 1."""
    with np.errstate(over="ignore"):  # arithmetic modulo 2^64 is meant
        mixed = place * np.uint64(0x9E3779B97F4A7C15) + seed * np.uint64(0xD1342543DE82EF95)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed = mixed ^ (mixed >> np.uint64(31))
    below: Bools = (mixed >> np.uint64(11)) * 2.0**-53 < share
    return below
