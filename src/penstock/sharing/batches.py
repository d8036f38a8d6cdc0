"""Claims of topologies that run in micro-batches: the latency of each number of processors."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock.errors import InvalidInput
from penstock.model.batch_overhead import BatchOverhead, steady_latency_s
from penstock.model.decision import USUAL_SHARE
from penstock.sharing.claims import Claims, Floats, Ints

MOST_ENTRIES = 20_000_000  # topologies times numbers of processors that are looked at


@dataclass(frozen=True)
class Promised:
    """A topology with its promise, its load and what its batches cost."""

    name: str
    max_latency_s: float
    load: float  # processors that its rows keep busy
    overhead: BatchOverhead
    share: float = USUAL_SHARE
    weight: float = 1.0
    least: int = 1
    most: int | None = None
    interval_s: float = 0.0


@dataclass(frozen=True)
class _Columns:
    topologies: Sequence[Promised]

    def _column(self, field: str) -> Floats:
        return np.array([getattr(one, field) for one in self.topologies], dtype=np.float64)[:, None]

    @cached_property
    def _cost(self) -> tuple[Floats, Floats, Floats]:
        parts = [
            (one.overhead.fixed_s, one.overhead.per_processor_s, one.overhead.work_s)
            for one in self.topologies
        ]
        columns = np.array(parts, dtype=np.float64)[:, :, None]
        return columns[:, 0], columns[:, 1], columns[:, 2]

    @cached_property
    def bound_s(self) -> Floats:
        return self._column("max_latency_s")

    def expected_s(self, processors: Floats) -> Floats:
        """Of each topology (rows) on so many processors (columns)."""
        fixed, growth, work = self._cost
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            own_s = fixed + growth * processors + work / processors
            used = np.where(self._column("load") > 0, self._column("load") / processors, 0.0)
        latency_s = steady_latency_s(own_s, used, self._column("share"), self._column("interval_s"))
        return np.where(processors > 0, latency_s, np.inf)

    def enough(self, least: Ints, most: Ints) -> Ints:
        """The fewest that keep the bound, or else the most: no more is ever worth having.

        Latency falls with processors up to its minimum, and rises from there: a bisection for the
        minimum, and one for the bound on the falling side of it.
        """
        one = np.array([[0.0, 1.0]])
        low, high = least.astype(np.float64), most.astype(np.float64)
        while (low < high).any():
            middle = np.floor((low + high) / 2)
            pair = self.expected_s(middle[:, None] + one)
            falls = (pair[:, 1] < pair[:, 0]) | np.isinf(pair[:, 0])
            low = np.where((low < high) & falls, middle + 1, low)
            high = np.where((low <= high) & ~falls, np.minimum(high, middle), high)
        best = low
        low, high = least.astype(np.float64), best
        while (low < high).any():
            middle = np.floor((low + high) / 2)
            keeps = self.expected_s(middle[:, None])[:, 0] <= self.bound_s[:, 0]
            high = np.where((low < high) & keeps, middle, high)
            low = np.where((low < high) & ~keeps, middle + 1, low)
        return np.asarray(high, dtype=np.int64)


def claims_of(topologies: Sequence[Promised], processors: int) -> Claims:
    """Curves from each minimum up to what is worth having of so many processors."""
    columns = _Columns(topologies)
    least = np.array([one.least for one in topologies], dtype=np.int64)
    most = np.array([processors if one.most is None else one.most for one in topologies])
    useful = columns.enough(least, np.maximum(least, np.minimum(most, processors)))
    width = int((useful - least).max(initial=0)) + 1
    if width * len(topologies) > MOST_ENTRIES:
        raise InvalidInput(
            f"topologies are {len(topologies)}, with up to {width} processors to choose from for "
            f"one of them; at most {MOST_ENTRIES} entries in all are looked at."
        )
    wanted = least[:, None] + np.arange(width)
    expected_s = columns.expected_s(wanted.astype(np.float64))
    return Claims(
        tuple(one.name for one in topologies),
        np.where(wanted <= useful[:, None], expected_s, np.inf),
        columns.bound_s[:, 0],
        np.array([one.share for one in topologies], dtype=np.float64),
        np.array([one.weight for one in topologies], dtype=np.float64),
        least,
    )
