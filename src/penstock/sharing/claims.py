"""What topologies ask of one cluster, and what they get."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from penstock.errors import InvalidInput

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

UNKNOWN = -1  # processors of a topology that had none before


@dataclass(frozen=True)
class Claims:
    """Topologies as columns, in one order.

    `expected_s[i, j]` is the latency that the share of topology i's results would stay within on
    `least[i] + j` processors: infinite where rows pile up, and where it may not have so many.
    """

    names: tuple[str, ...]
    expected_s: Floats
    bound_s: Floats
    share: Floats
    weight: Floats
    least: Ints

    def __post_init__(self) -> None:
        columns = (self.expected_s, self.bound_s, self.share, self.weight, self.least)
        if any(len(column) != len(self.names) for column in columns):
            raise InvalidInput("claims: each topology needs an entry in every column.")
        if np.isnan(self.expected_s).any() or not (self.bound_s > 0).all():
            raise InvalidInput("claims: latencies must be numbers, and bounds above 0.")
        if not (self.weight > 0).all() or not (self.least >= 0).all():
            raise InvalidInput("claims: weights must be above 0, and minima at least 0.")

    @cached_property
    def lateness(self) -> Floats:
        """Latency over the bound, the best with at most so many processors: it never rises."""
        late = self.expected_s / self.bound_s[:, None]
        return np.asarray(np.minimum.accumulate(late, axis=1))

    def extra_for(self, lateness: float) -> Ints:
        """Processors beyond the minimum until it is as little late; the width where it never is."""
        return np.asarray((self.lateness > lateness).sum(axis=1), dtype=np.int64)

    @cached_property
    def need(self) -> Ints:
        """Processors beyond the minimum that keep the promise; the width where none do."""
        return self.extra_for(1.0)

    @cached_property
    def keepable(self) -> Bools:
        """Whether any number of processors keeps the promise."""
        return np.asarray(self.need < self.expected_s.shape[1])

    def lateness_at(self, extra: Ints) -> Floats:
        """Latency over the bound with exactly so many beyond the minimum."""
        place = np.clip(extra, 0, self.expected_s.shape[1] - 1)
        return np.asarray(self.expected_s[np.arange(len(extra)), place] / self.bound_s)


@dataclass(frozen=True)
class Division:
    """Processors of each topology, and executors in all."""

    processors: Mapping[str, int]
    executors: int
    kept: tuple[str, ...]
    missed: Mapping[str, float]  # the latency that is expected instead of the bound
