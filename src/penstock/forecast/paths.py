"""Forecasts of one series from each of its moments, so that each can be judged by what came then.

A forecaster of paths gives, for every moment of a series at once, the values so many steps later:
the rows of the past are its record, the last row is what it expects now.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from penstock.forecast.seasonal_regression import SeasonalRegression
from penstock.forecast.seasons import season_of
from penstock.model.observation import Floats, Ints

_LEVEL_WEIGHT = 0.2  # of the newest value in what is compared with a calendar
_LEAST_WEIGHT = 1e-4  # of an old value; a filter ends where its weights fall below it


class PathForecaster(Protocol):
    """Expects the near future of one series."""

    @property
    def name(self) -> str:
        """How it is called in a reason."""

    @property
    def recurs(self) -> bool:
        """Whether it knows when a load that went will come again."""

    @property
    def trust(self) -> float:
        """Its loss is divided by this: above 1 where it knows more than the series shows yet."""

    def paths(self, series: Floats, steps: Ints) -> Floats:
        """(moments, steps): what was expected at each moment; NaN where nothing could be said."""


@dataclass(frozen=True)
class LastValue:
    """As it is now, for every step.

    >>> LastValue().paths(np.array([1.0, 3.0]), np.array([1, 5])).tolist()
    [[1.0, 1.0], [3.0, 3.0]]
    """

    recurs: ClassVar[bool] = False
    trust: ClassVar[float] = 1.0

    @property
    def name(self) -> str:
        return "the last value"

    def paths(self, series: Floats, steps: Ints) -> Floats:
        """Each value, repeated."""
        return np.repeat(series[:, None], len(steps), axis=1)


@dataclass(frozen=True)
class Trend:
    """On as in most of the last `changes`, for as long again.

        forecast of step h = now + d min(h, changes)
        d = median of the last changes, no steeper than the steepest of the `newest`

    One step of the load is one change among several, so no trend, however high it is; and a rise
    over a few periods that is over is none any more.
    """

    changes: int
    newest: int = 2

    recurs: ClassVar[bool] = False
    trust: ClassVar[float] = 1.0

    @property
    def name(self) -> str:
        return f"the trend of {self.changes} changes"

    def paths(self, series: Floats, steps: Ints) -> Floats:
        """The value of each moment and its trend, never below zero; before the first, no change."""
        changes = np.concatenate([np.zeros(self.changes), np.diff(series)])
        looked_at = sliding_window_view(changes, self.changes)
        newest = looked_at[:, -self.newest :]
        trend: Floats = np.clip(
            np.median(looked_at, axis=1),
            np.minimum(0.0, newest.min(axis=1)),
            np.maximum(0.0, newest.max(axis=1)),
        )
        ahead = np.minimum(steps, self.changes)
        expected: Floats = np.maximum(0.0, series[:, None] + trend[:, None] * ahead)
        return expected


@dataclass(frozen=True)
class Mean:
    """The mean of all, for every step: for loads that come and go unannounced.

    With its errors, it expects what was seen as often before, whatever there is now.
    """

    recurs: ClassVar[bool] = False
    trust: ClassVar[float] = 1.0

    @property
    def name(self) -> str:
        return "the mean"

    def paths(self, series: Floats, steps: Ints) -> Floats:
        """The mean, repeated; which constant it is makes no difference to errors and quantiles."""
        return np.full((len(series), len(steps)), series.mean())


@dataclass(frozen=True)
class Seasonal:
    """One season ago, brought to the present level; the season is found in the series itself."""

    recurs: ClassVar[bool] = True
    trust: ClassVar[float] = 1.0

    @property
    def name(self) -> str:
        return "its own season"

    def paths(self, series: Floats, steps: Ints) -> Floats:
        """What followed a season before each moment, times level now over level then."""
        season = season_of(series)
        expected = np.full((len(series), len(steps)), np.nan)
        if season is None or season < steps[-1]:
            return expected
        level = _smoothed(series, 0.5)
        moments = np.arange(season, len(series))
        then = moments - season
        with np.errstate(divide="ignore", invalid="ignore"):
            growth = np.where(level[then] > 0, level[moments] / level[then], 1.0)
        following = series[then[:, None] + steps]
        expected[season:] = following * np.clip(growth, 0.5, 2.0)[:, None]
        return expected


@dataclass(frozen=True)
class Calendar:
    """What earlier runs saw at this time of the day or week, brought to the present level.

    `usual` are the usual values at the moments of the series and at as many more as are asked for,
    as looked up by whoever knows the clock.
    """

    usual: tuple[float, ...]

    recurs: ClassVar[bool] = True
    trust: ClassVar[float] = 1.25

    @property
    def name(self) -> str:
        return "the calendar"

    def paths(self, series: Floats, steps: Ints) -> Floats:
        """Usual values of the steps ahead, times the present over what is usual now."""
        usual = np.asarray(self.usual)
        if len(usual) < len(series) + steps[-1]:
            return np.full((len(series), len(steps)), np.nan)
        moments = np.arange(len(series))
        so_far = np.where(np.isfinite(usual[: len(series)]), usual[: len(series)], series)
        now, level = (_smoothed(one, _LEVEL_WEIGHT) for one in (so_far, series))
        with np.errstate(divide="ignore", invalid="ignore"):
            growth = np.where(now > 0, level / now, np.nan)
        ahead: Floats = usual[moments[:, None] + steps]
        expected: Floats = ahead * np.clip(growth, 0.2, 5.0)[:, None]
        return expected


@dataclass(frozen=True)
class Announced:
    """What the sources said at each moment that they would bring: admission knows its streams.

    `rates_per_s` are for `steps_ahead` later, so nearer steps were announced before, and later ones
    are taken to stay as announced.
    """

    rates_per_s: tuple[float, ...]
    steps_ahead: int

    recurs: ClassVar[bool] = True
    trust: ClassVar[float] = 1.25

    @property
    def name(self) -> str:
        return "what admission foresees"

    def paths(self, series: Floats, steps: Ints) -> Floats:
        """From what is now to what was announced; NaN where nothing was."""
        announced = np.asarray(self.rates_per_s)
        if len(announced) != len(series):
            return np.full((len(series), len(steps)), np.nan)
        since = np.maximum(0, self.steps_ahead - steps)
        moments = np.maximum(0, np.arange(len(series))[:, None] - since)
        expected: Floats = announced[moments]
        return expected


USUAL_FORECASTERS: tuple[PathForecaster, ...] = (
    LastValue(), Mean(), Trend(5), Seasonal(), SeasonalRegression(),
)  # fmt: skip


def _smoothed(series: Floats, weight: float) -> Floats:
    """Exponential smoothing, begun at the first value."""
    length = int(np.ceil(np.log(_LEAST_WEIGHT) / np.log(1 - weight)))
    kernel = weight * (1 - weight) ** np.arange(length)
    before = np.full(length - 1, series[0])
    return np.convolve(np.concatenate([before, series]), kernel / kernel.sum(), mode="valid")


def evenly(at_s: Sequence[float], values: Sequence[float], step_s: float) -> Floats:
    """Values at moments `step_s` apart that end at the last, linear between what was measured.

    >>> evenly([0.0, 5.0, 15.0], [1.0, 2.0, 4.0], 5.0).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    times, measured = np.asarray(at_s), np.asarray(values)
    known = np.isfinite(measured)
    times, measured = times[known], measured[known]
    if len(times) == 0:
        return np.empty(0)
    count = round((times[-1] - times[0]) / step_s)
    moments = times[-1] - step_s * np.arange(count, -1, -1)
    found: Floats = np.interp(moments, times, measured)
    return found
