"""A regression on the newest values and on what followed at this time of earlier seasons.

For each step ahead h, and y a series whose season is m,

    y(t + h) = c + sum over lags l of a(l) y(t - l)
                 + sum over seasons k of b(k) y(t + h - k m) + d(k) y(t - k m)

by ridge regression over the moments that have all of these. What it would have expected at a moment
of the past is found without that moment, in closed form (the residual over 1 - its leverage), so
its errors are those of forecasts and not of a fit (the jackknife of Barber et al. 2021).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from penstock.forecast.seasons import season_of
from penstock.model.observation import Floats, Ints

LAGS = (0, 1, 2, 4, 8)
_LATELY = 4  # seasons
_WEEK = 7  # seasons: the same day, where a season is one
_LEAST_WEEK = 3  # seasons beyond a week, before that one is looked at
_RIDGE = 1e-3  # of the variance of a feature
LEAST_MOMENTS = 3  # for each weight that is to be found
_MOST_LEVERAGE = 0.9


@dataclass(frozen=True)
class SeasonalRegression:
    """Weighs the present against earlier seasons as they were worth it so far."""

    recurs: ClassVar[bool] = True
    trust: ClassVar[float] = 1.0

    @property
    def name(self) -> str:
        return "its season and the present"

    def paths(self, series: Floats, steps: Ints) -> Floats:
        """What the regression expects, each moment of the past left out of its own."""
        expected = np.full((len(series), len(steps)), np.nan)
        season = season_of(series)
        if season is None or season < steps[-1]:
            return expected
        known = len(series) // season - 1
        seasons = [
            *range(1, min(_LATELY, known) + 1),
            *([_WEEK] if known >= _WEEK + _LEAST_WEEK else []),
        ]
        first = max(seasons, default=0) * season
        moments = np.arange(first, len(series))
        weights = 2 + len(LAGS) + 2 * len(seasons)
        if not seasons or len(moments) - steps[-1] < LEAST_MOMENTS * weights:
            return expected
        back = season * np.array(seasons)
        present = series[moments[:, None] - np.array([*LAGS, *back])]
        for column, step in enumerate(steps.tolist()):
            then = series[moments[:, None] + step - back]
            expected[first:, column] = left_out(
                np.column_stack([present, then]), series[first + step :]
            )
        kept: Floats = np.maximum(0.0, expected)
        return kept


def left_out(features: Floats, came: Floats) -> Floats:
    """What each row's features expect of it, by all other rows; of the newest, by all."""
    known = features[: len(came)]
    mean, scale = known.mean(axis=0), known.std(axis=0) + 1e-9
    usual = float(came.mean())
    known, features = (known - mean) / scale, (features - mean) / scale
    square = known.T @ known
    square[np.diag_indices_from(square)] += _RIDGE * len(known)
    inverse = np.linalg.inv(square)
    fitted = usual + features @ (inverse @ (known.T @ (came - usual)))
    leverage = 1 / len(known) + ((known @ inverse) * known).sum(axis=1)
    leverage = np.minimum(_MOST_LEVERAGE, leverage)
    fitted[: len(came)] -= (came - fitted[: len(came)]) * leverage / (1 - leverage)
    return np.asarray(fitted, dtype=np.float64)
