"""Streams, lanes and what is promised: everything an admission decision may look at."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from penstock.admission.overload import queue_latency_s
from penstock.admission.ticks import FULL, in_ticks
from penstock.errors import InvalidInput
from penstock.forecast.metadata import StreamMetadata
from penstock.forecast.outlook import Outlook
from penstock.model.observation import Floats, Ints

Bools = NDArray[np.bool_]
OVERLOAD_BY = ("either", "queue")  # late by its queue or too full; or only late by its queue
ACCEPT_BELOW = 0.85  # leaves room for what a forecast misses
HORIZON = 2  # periods; over one, no rate is expected to change
NEW = -1  # the lane of a stream that is not admitted yet


@dataclass(frozen=True)
class AdmissionProblem:
    """Streams and lanes as columns; a stream's lane is a row of the lanes, or NEW.

    `rates_per_s` is (streams, periods) and `queue_rows` (lanes, samples), both oldest first, NaN
    where nothing was measured. Rows that wait must be served within the bound, beside those that
    come: those of `backlog_rows` wait at their stream and go with it to another lane; without
    it, a lane's queue stays in the lane. With `drain_below` a lane is emptied when the others would
    then be filled at most to that share; without it lanes only empty as their streams leave or
    move.
    """

    rates_per_s: Floats
    lane: Ints
    queue_rows: Floats
    lane_capacity_per_s: float
    latency_bound_s: float
    horizon: int = HORIZON
    metadata: StreamMetadata | None = None
    age_periods: Floats | None = None  # since each stream joined; None: as far as rates reach back
    backlog_rows: Floats | None = None  # of each stream
    accept_below: float = ACCEPT_BELOW  # share of its capacity to which a lane is filled
    drain_below: float | None = None
    overload_by: str = "either"  # of OVERLOAD_BY

    def __post_init__(self) -> None:
        for field, value in (
            ("lane_capacity", self.lane_capacity_per_s), ("latency_bound_s", self.latency_bound_s),
        ):  # fmt: skip
            if not 0 < value < np.inf:
                raise InvalidInput(f"{field} is {value}; it must be a finite number above zero.")
        if self.horizon < 1:
            raise InvalidInput(f"horizon is {self.horizon}; it must be at least 1.")
        if not 0 < self.accept_below <= 1:
            raise InvalidInput(f"accept_below is {self.accept_below}; it must be in (0, 1].")
        if self.overload_by not in OVERLOAD_BY:
            allowed = ", ".join(OVERLOAD_BY)
            raise InvalidInput(f"overload_by is {self.overload_by!r}; allowed: {allowed}.")
        if len(self.lane) != len(self.rates_per_s):
            raise ValueError("lane and rates_per_s must have one row a stream")
        if self.backlog_rows is not None and len(self.backlog_rows) != len(self.lane):
            raise ValueError("backlog_rows must have one row a stream")
        if len(self.lane) and not NEW <= self.lane.min() <= self.lane.max() < self.lanes:
            raise ValueError("lane must be a row of queue_rows, or NEW")

    @property
    def streams(self) -> int:
        """Number of streams."""
        return len(self.lane)

    @property
    def lanes(self) -> int:
        """Number of lanes there are."""
        return len(self.queue_rows)


@dataclass(frozen=True)
class Situation:
    """A problem seen with a strategy's beliefs: what each stream and each lane will carry."""

    problem: AdmissionProblem
    outlook: Outlook

    @cached_property
    def backlog_per_s(self) -> Floats:
        """What each stream needs to have the rows that wait at it served within the bound."""
        rows = self.problem.backlog_rows
        if rows is None:
            return np.zeros(self.problem.streams)
        return rows / self.problem.latency_bound_s

    @cached_property
    def need_per_s(self) -> Floats:
        """What each stream needs for the rows that come and for those that wait."""
        return self.outlook.needed_rate_per_s + self.backlog_per_s

    @cached_property
    def size(self) -> Ints:
        """Room each stream needs, in ticks of a lane."""
        return in_ticks(self.need_per_s, self.problem.lane_capacity_per_s)

    @cached_property
    def latency_s(self) -> Floats:
        """How late each lane is, by its queue."""
        return queue_latency_s(self.problem.queue_rows, self.problem.lane_capacity_per_s)

    @property
    def late(self) -> Bools:
        """Lanes whose queue takes longer than the bound."""
        return self.latency_s > self.problem.latency_bound_s

    @cached_property
    def queued(self) -> Ints:
        """What each lane needs to serve its own queue within the bound, in ticks."""
        if self.problem.backlog_rows is not None:  # it is the streams' and goes with them
            return np.zeros(self.problem.lanes, dtype=np.int64)
        return in_ticks(self.latency_s, self.problem.latency_bound_s)

    @cached_property
    def stream_load(self) -> Ints:
        """What the streams of each lane need together, in ticks."""
        lane, placed = self.problem.lane, self.problem.lane != NEW
        total = np.bincount(lane[placed], self.size[placed], self.problem.lanes)
        return total.astype(np.int64)

    @property
    def load(self) -> Ints:
        """What each lane needs for its streams and its queue, in ticks."""
        return self.stream_load + self.queued

    @property
    def level(self) -> int:
        """How far lanes are filled, in ticks."""
        return int(self.problem.accept_below * FULL)

    @property
    def too_full(self) -> Bools:
        """Lanes that need more than they can carry, beyond rounding."""
        return self.load > FULL
