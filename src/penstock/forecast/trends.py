"""Trends of many series at once, by least squares (Kotto-Kombi 2018, ch. 5 s. 3.1, ch. 6 s. 2.1).

Each row of `series` holds equally spaced measurements x = 1 .. n; the trend gives the next n.

    linear        y = a + b x
    logarithmic   y = a + b ln x
    exponential   y = exp(a + b x)        for positive series
"""

from dataclasses import dataclass

import numpy as np

from penstock.model.observation import Floats, Ints

KINDS = ("linear", "logarithmic", "exponential")
_LARGEST_EXPONENT = 600.0  # exp of more overflows


@dataclass(frozen=True)
class Trends:
    """The next n values of each series, whether it rises, and which kind of line fits best."""

    next_values: Floats  # (series, n), never below zero
    rises: tuple[bool, ...]
    kind: Ints  # place in KINDS


def linear_trends(series: Floats) -> Trends:
    """Straight lines."""
    count, length = series.shape
    x, ahead = _axis(length)
    intercept, slope = _fit(x, series)
    values = np.maximum(0.0, intercept[:, None] + slope[:, None] * ahead)
    return Trends(values, _rising(slope, series), np.zeros(count, dtype=np.int64))


def best_trends(series: Floats) -> Trends:
    """Of the three kinds, for each series the one that fits it best; the simplest on a tie."""
    count, length = series.shape
    x, ahead = _axis(length)
    fits = [_on(x, ahead, series), _on(np.log(x), np.log(ahead), series)]
    positive = series.min(axis=1) > 0
    exponents = np.log(np.where(positive[:, None], series, 1.0))
    past, values = _on(x, ahead, exponents)
    fits.append((_exp(past), _exp(values)))
    errors = np.array([np.square(past - series).sum(axis=1) for past, _ in fits])
    errors[2, ~positive] = np.inf
    # Equal but for rounding counts as a tie.
    errors = np.where(errors <= errors.min(axis=0) * (1 + 1e-9) + 1e-12, 0.0, 1.0)
    kind = errors.argmin(axis=0)
    values = np.array([values for _, values in fits])[kind, np.arange(count)]
    slope = _fit(x, series)[1]
    return Trends(np.maximum(0.0, values), _rising(slope, series), kind)


def _axis(length: int) -> tuple[Floats, Floats]:
    x = np.arange(1, 2 * length + 1, dtype=np.float64)
    return x[:length], x[length:]


def _fit(x: Floats, series: Floats) -> tuple[Floats, Floats]:
    centred = x - x.mean()
    spread = float(np.dot(centred, centred))
    mean = series.mean(axis=1)
    slope = series @ centred / spread if spread > 0 else np.zeros(len(series))
    return mean - slope * x.mean(), slope


def _on(x: Floats, ahead: Floats, series: Floats) -> tuple[Floats, Floats]:
    intercept, slope = _fit(x, series)
    line = intercept[:, None] + slope[:, None] * x
    return line, intercept[:, None] + slope[:, None] * ahead


def _exp(values: Floats) -> Floats:
    grown: Floats = np.exp(np.minimum(values, _LARGEST_EXPONENT))
    return grown


def _rising(slope: Floats, series: Floats) -> tuple[bool, ...]:
    """Strictly rising, beyond rounding."""
    least = 1e-9 * np.abs(series).mean(axis=1)
    return tuple(bool(value) for value in slope > least)
