"""Activity levels of operators and what follows from them (Kotto-Kombi 2018, ch. 5 s. 3 to 5).

    EstimInput   rows expected in the next Delta, pending ones included           (2), (3)
    Capacity     Delta x degree / mean latency of the window                      (4)
    level        EstimInput / Capacity                                            (6), (10)

Differs from Kotto-Kombi 2018, ch. 5 (5): no covariance is added. Its unit is rows squared; brought
to rows by the variance, that of iterations which overlap is the capacity of the last one again.
Differs from Kotto-Kombi 2018, ch. 5 (3): pending is of the last iteration, as in (1), not of the
coming one.
"""

from dataclasses import dataclass

import numpy as np

from penstock.errors import InvalidInput
from penstock.forecast.trends import Trends
from penstock.model.observation import Floats
from penstock.scaling.windows import OperatorWindows

SCALE_IN, NOTHING, SCALE_OUT = -1, 0, 1
COMBINE = ("max", "min")
_FREE_S = 1e-12  # a row that takes less costs nothing


@dataclass(frozen=True)
class Thresholds:
    """Below `low` an operator is hardly active, above `high` highly, above one critically."""

    low: float = 0.3
    high: float = 0.8

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high <= 1:
            raise InvalidInput(
                f"theta_min is {self.low:g} and theta_max {self.high:g}; they must satisfy "
                "0 <= theta_min < theta_max <= 1."
            )

    def action(self, level: float, rises: bool) -> int:
        """The decision tables 1 and 2: they are the same table, on GAL and on LAL."""
        if level >= 1 or (level >= self.high and rises):
            return SCALE_OUT
        return SCALE_IN if level < self.low and not rises else NOTHING


def check_combine(combine: str) -> None:
    """Refuse what is neither max nor min."""
    if combine not in COMBINE:
        raise InvalidInput(f"combine is {combine!r}; known: {', '.join(COMBINE)}.")


def combined(combine: str, local: float, upstream: float) -> float:
    """The globally consistent estimate: max for safety, min for thrift (s.4.3)."""
    return max(local, upstream) if combine == "max" else min(local, upstream)


def expected_rows(trends: Trends) -> Floats:
    """Rows received in the next iteration, each measurement rounded up (2)."""
    total: Floats = np.ceil(trends.next_values - 1e-9).sum(axis=1)
    return total


def task_capacities(windows: OperatorWindows) -> Floats:
    """Rows one task can process in an iteration (4); infinite where rows cost nothing.

    The latency is the mean of the window: an average of capacities would let the quick intervals
    of an operator hide its slow ones.
    """
    latency_s = windows.service_time_s.mean(axis=1)
    with np.errstate(divide="ignore"):
        capacities: Floats = windows.duration_s / np.where(latency_s < _FREE_S, 0.0, latency_s)
    return capacities


def degree(current: int, level: float, action: int, most: int) -> int:
    """The parallelism degree (11): one more when highly active, else current x level, rounded up.

    A scale-out always adds a task and a scale-in always leaves one.
    """
    if action == NOTHING:
        return current
    if action == SCALE_OUT and level < 1:
        return min(most, current + 1)
    wanted = int(np.ceil(min(current * level, 1e9) - 1e-9))
    if action == SCALE_OUT:
        wanted = max(wanted, current + 1)
    return max(1, min(most, wanted))
