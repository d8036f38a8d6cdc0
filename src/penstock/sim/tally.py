"""What is counted in a period, and the latency of its results."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from penstock.model.observation import LatencyObservation
from penstock.sim.jobs import Jobs, merged

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass
class OperatorTally:
    """Counts of one operator in the present period."""

    offered_rows: int = 0  # reached its queue
    served_rows: int = 0
    emitted_rows: int = 0
    work_s: float = 0.0  # processor-seconds of the rows it served
    busy_s: float = 0.0  # processor-seconds spent within the period
    sent_rows: Counter[str] = field(default_factory=Counter)  # by the operator that gets them


@dataclass(frozen=True)
class Batch:
    """One finished micro-batch."""

    start_s: float
    duration_s: float
    overhead_s: float
    rows: int


@dataclass
class Tally:
    """Counts of all operators, and results, in the present period."""

    operators: dict[str, OperatorTally]
    arrived_rows: int = 0
    results: list[Jobs] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)

    @classmethod
    def of(cls, operators: Iterable[str]) -> "Tally":
        """An empty one."""
        return cls({name: OperatorTally() for name in operators})


@dataclass(frozen=True)
class Results:
    """Results as columns: when each cohort was done, how long it took, how many rows it is."""

    at_s: Floats
    latency_s: Floats
    rows: Ints

    @classmethod
    def of(cls, parts: Sequence[Jobs]) -> "Results":
        """From jobs that reached a sink."""
        jobs = merged(parts)
        return cls(jobs.at_s, jobs.at_s - jobs.origin_s, jobs.rows)

    @classmethod
    def joined(cls, parts: Sequence["Results"]) -> "Results":
        """Those of several periods in order."""
        if not parts:
            return cls(np.empty(0), np.empty(0), np.empty(0, dtype=np.int64))
        return cls(
            np.concatenate([part.at_s for part in parts]),
            np.concatenate([part.latency_s for part in parts]),
            np.concatenate([part.rows for part in parts]),
        )

    @property
    def count(self) -> int:
        """Rows of all cohorts."""
        return int(self.rows.sum())

    @property
    def mean_s(self) -> float:
        """Mean latency of a row; NaN without any."""
        return float((self.latency_s * self.rows).sum() / self.count) if self.count else math.nan

    def quantile_s(self, share: float) -> float:
        """The latency that a share of the rows stays within; NaN without any."""
        return self.quantiles_s(share)[0]

    def quantiles_s(self, *shares: float) -> tuple[float, ...]:
        """Those of several shares."""
        if not self.count:
            return (math.nan,) * len(shares)
        order = np.argsort(self.latency_s, kind="stable")
        reached = np.cumsum(self.rows[order])
        places = np.searchsorted(reached, np.array(shares) * reached[-1])
        return tuple(self.latency_s[order[np.minimum(places, len(order) - 1)]].tolist())

    def in_time_share(self, bound_s: float) -> float:
        """Share of rows within the bound; NaN without any."""
        if not self.count:
            return math.nan
        return float(self.rows[self.latency_s <= bound_s].sum() / self.count)

    def observed(self, bound_s: float, share: float) -> LatencyObservation | None:
        """As the loop sees it, which is to keep a share within the bound; None without results."""
        if not self.count:
            return None
        p95_s, share_s = self.quantiles_s(0.95, share)
        return LatencyObservation(
            self.count, self.mean_s, p95_s, float(self.latency_s.max()),
            self.in_time_share(bound_s), share_s,
        )  # fmt: skip
