"""A regression on the newest values and on what earlier runs saw at these times of the week.

For each step ahead h, y the series and u what is usual,

    y(t + h) = c + sum over lags l of a(l) y(t - l) + b u(t + h) + d u(t) + e u(t - g)

by ridge regression over the moments that have all of these, each forecast without its own moment
(`seasonal_regression`). So a run knows from its first minutes how its load will move, and learns
how far this week is like the others.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from penstock.forecast.seasonal_regression import LAGS, LEAST_MOMENTS, left_out
from penstock.model.observation import Floats, Ints

_BEFORE = 4  # steps: g, whether it usually rises or falls by now


@dataclass(frozen=True)
class CalendarRegression:
    """Weighs the present against what is usual as they were worth it so far.

    `usual` are the usual values at the moments of the series and at as many more as are asked for.
    """

    usual: tuple[float, ...]

    recurs: ClassVar[bool] = True
    trust: ClassVar[float] = 1.0

    @property
    def name(self) -> str:
        return "the calendar and the present"

    def paths(self, series: Floats, steps: Ints) -> Floats:
        """What the regression expects; NaN while too little was seen or the calendar has gaps."""
        expected = np.full((len(series), len(steps)), np.nan)
        usual = np.asarray(self.usual)
        features = len(LAGS) + 4
        first = max(*LAGS, _BEFORE)
        moments = np.arange(first, len(series))
        if len(moments) - steps[-1] < LEAST_MOMENTS * features:
            return expected
        if len(usual) < len(series) + steps[-1] or not np.isfinite(usual).all():
            return expected
        present = series[moments[:, None] - np.array(LAGS)]
        now = usual[moments[:, None] - np.array([0, _BEFORE])]
        for column, step in enumerate(steps.tolist()):
            known = np.column_stack([present, now, usual[moments + step]])
            expected[first:, column] = left_out(known, series[first + step :])
        kept: Floats = np.maximum(0.0, expected)
        return kept
