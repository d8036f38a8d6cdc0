"""Streams, lanes and what is promised: everything an admission decision may look at."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from penstock.admission.ticks import FULL, in_ticks
from penstock.errors import InvalidInput
from penstock.forecast.metadata import StreamMetadata
from penstock.forecast.outlook import Outlook
from penstock.model.observation import Floats, Ints

Bools = NDArray[np.bool_]
OVERLOAD_BY = ("either", "queue")  # late by its queue or too full; or only late by its queue
NEW = -1  # the lane of a stream that is not admitted yet


@dataclass(frozen=True)
class AdmissionProblem:
    """Streams and lanes as columns; a stream's lane is a row of the lanes, or NEW.

    `rates_per_s` is (streams, periods) and `queue_rows` (lanes, samples), both oldest first, NaN
    where nothing was measured. With `drain_below` a lane is emptied when the others would then be
    filled at most to that share; without it lanes only empty as their streams leave or move.
    """

    rates_per_s: Floats
    lane: Ints
    queue_rows: Floats
    lane_capacity_per_s: float
    latency_bound_s: float
    horizon: int = 1
    metadata: StreamMetadata | None = None
    age_periods: Floats | None = None  # since each stream joined; None: as far as rates reach back
    accept_below: float = 1.0  # share of its capacity to which a lane takes streams in
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
    def size(self) -> Ints:
        """Room each stream needs, in ticks of a lane."""
        return in_ticks(self.outlook.needed_rate_per_s, self.problem.lane_capacity_per_s)

    @cached_property
    def load(self) -> Ints:
        """What the streams of each lane need together, in ticks."""
        lane, placed = self.problem.lane, self.problem.lane != NEW
        total = np.bincount(lane[placed], self.size[placed], self.problem.lanes)
        return total.astype(np.int64)

    @property
    def too_full(self) -> Bools:
        """Lanes that will get more than they can carry, beyond rounding."""
        return self.load > FULL
