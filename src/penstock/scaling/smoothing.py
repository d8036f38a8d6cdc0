"""Smoothing of measurements over the intervals of a window (Fu et al. 2017, s. IV-A).

D(n) = alpha D(n - 1) + (1 - alpha) d(n)          alpha-weighted, alpha in [0, 1)
D(n) = (1 / w) sum of the last w measurements     window
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.errors import InvalidInput
from penstock.model.observation import Floats


@dataclass(frozen=True)
class Smoothing:
    """By window of `window` measurements, or by `alpha` where one is given.

    Measurements that are missing (NaN) are passed over; infinite ones count.

    >>> Smoothing(window=2)([1.0, 2.0, 4.0]), Smoothing(alpha=0.5)([1.0, 2.0, 4.0])
    (3.0, 2.75)
    """

    window: int = 1
    alpha: float | None = None

    def __post_init__(self) -> None:
        if self.window < 1:
            raise InvalidInput(f"smoothing window is {self.window}; it must be at least 1.")
        if self.alpha is not None and not 0 <= self.alpha < 1:
            raise InvalidInput(f"smoothing alpha is {self.alpha:g}; allowed: 0 <= alpha < 1.")

    def __call__(self, measurements: Sequence[float]) -> float:
        """The smoothed value after the last measurement; NaN when there is none."""
        if self.alpha is None:
            known = _known(measurements[-self.window :])
            return sum(known) / len(known) if known else math.nan
        known = _known(measurements)
        smooth = known[0] if known else math.nan
        for value in known[1:]:
            smooth = self.alpha * smooth + (1 - self.alpha) * value
        return smooth

    def columns(self, measurements: Floats) -> Floats:
        """The same of many series, one in each row."""
        if self.alpha is None:
            recent = measurements[:, -self.window :]
            known = ~np.isnan(recent)
            total = np.where(known, recent, 0.0).sum(axis=1)
            with np.errstate(invalid="ignore"):
                return np.asarray(total / np.where(known.any(axis=1), known.sum(axis=1), np.nan))
        smooth: Floats = measurements[:, 0].copy()
        for value in measurements.T[1:]:
            next_ = self.alpha * smooth + (1 - self.alpha) * value
            smooth = np.where(np.isnan(value), smooth, np.where(np.isnan(smooth), value, next_))
        return smooth


def _known(measurements: Iterable[float]) -> list[float]:
    return [value for value in measurements if not math.isnan(value)]
