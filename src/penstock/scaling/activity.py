"""Activity levels of operators and what follows from them (Kotto-Kombi 2018, ch. 5 s. 3 to 5).

    EstimInput   rows expected in the next Delta, pending ones included           (2), (3)
    Capacity     Delta x degree / latency, brought forward by its persistence     (4), (5)
    level        EstimInput / EstimCapacity                                       (6), (10)

The persistence is the lag-one covariance over the variance, times the last deviation.

Differs from Kotto-Kombi 2018, ch. 5 (5): epsilon is in rows; a plain covariance is in rows squared.
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
    """Rows one task can process in the next iteration; infinite where rows cost nothing."""
    with np.errstate(divide="ignore"):
        capacities = windows.duration_s / np.where(
            windows.service_time_s < _FREE_S, 0.0, windows.service_time_s
        )
    finite = np.all(np.isfinite(capacities), axis=1)
    kept = np.where(np.reshape(finite, (-1, 1)), capacities, 1.0)
    mean = kept.mean(axis=1)
    deviation = kept - mean[:, None]
    variance = np.square(deviation).mean(axis=1)
    if kept.shape[1] < 3:
        persistence = np.zeros(len(kept))
    else:
        covariance = (deviation[:, 1:] * deviation[:, :-1]).mean(axis=1)
        usable = variance > (1e-9 * mean) ** 2
        ratio = np.where(usable, covariance / np.where(usable, variance, 1.0), 0.0)
        persistence = np.clip(ratio, -1.0, 1.0)
    estimate = mean + persistence * deviation[:, -1]
    estimate = np.clip(estimate, kept.min(axis=1), kept.max(axis=1))
    result: Floats = np.where(finite, estimate, np.inf)
    return result


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
