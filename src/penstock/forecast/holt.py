"""Holt's linear trend over all streams at once (Balkesen et al. 2013, s. 2.3).

    L_t = alpha X_t + (1 - alpha) (L_{t-1} + T_{t-1})
    T_t = gamma (L_t - L_{t-1}) + (1 - gamma) T_{t-1}
    forecast of X_{t+k} = L_t + k T_t

X is the rate measured in a period, L its level, T its trend. Each stream gets the pair of alpha
and gamma, of a small grid, whose forecasts of one step ahead missed its own history the least
(Chatfield and Yar's advice, ref. [5] of the paper). All pairs are smoothed side by side, in blocks
of streams that stay in the processor's cache.

The first level is the first measurement. The first trend is the median of the first three changes
between measurements, changes that are still to come counting as none: a single outlier or step
among the first measurements is no trend, and two measurements make none.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from penstock.model.observation import Floats

LEVEL_WEIGHTS = (0.9, 0.6, 0.3, 0.1)  # of pairs that did equally well, the first is taken
TREND_WEIGHTS = (0.05, 0.2, 0.5)
_BLOCK = 4096  # streams; twelve pairs of them are a few hundred kilobytes a column
_FIRST_CHANGES = 3  # their median is the first trend


@dataclass(frozen=True)
class Smoothing:
    """Where the smoothing of each stream stands: its weights, level and trend."""

    alpha: Floats
    gamma: Floats
    level: Floats
    trend: Floats


@dataclass(frozen=True)
class Holt:
    """Fitted anew from the history at each call, so it has no memory of its own.

    >>> Holt().forecast(np.array([[10.0, 12.0, 14.0, 16.0]]), (1, 3)).round(6).tolist()
    [[18.0, 22.0]]
    """

    level_weights: tuple[float, ...] = LEVEL_WEIGHTS
    trend_weights: tuple[float, ...] = TREND_WEIGHTS

    def forecast(self, history: Floats, steps: tuple[int, ...]) -> Floats:
        """The line through level and trend, never below zero; NaN without any measurement."""
        now = self.fit(history)
        ahead = np.asarray(steps, dtype=np.float64)
        return np.maximum(0.0, now.level[:, None] + now.trend[:, None] * ahead)

    def fit(self, history: Floats) -> Smoothing:
        """Weights fitted to each stream's history, with the level and trend they lead to."""
        count, length = history.shape
        columns = np.full((4, count), np.nan)
        pairs = np.array([(a, g) for a in self.level_weights for g in self.trend_weights])
        if length:
            for start in range(0, count, _BLOCK):
                block = np.ascontiguousarray(history[start : start + _BLOCK].T)
                columns[:, start : start + _BLOCK] = _fit_block(block, pairs)
        return Smoothing(*columns)


def _fit_block(rates: Floats, pairs: Floats) -> Floats:
    """Rows alpha, gamma, level and trend of the best pair, for rates of (periods, streams)."""
    known = ~np.isnan(rates)
    smooth = _whole if known.all() else _with_gaps
    level, trend, missed = smooth(rates, known, pairs[:, :1], pairs[:, 1:])
    best = missed.argmin(axis=0)
    stream = np.arange(rates.shape[1])
    return np.stack([pairs[best, 0], pairs[best, 1], level[best, stream], trend[best, stream]])


def _whole(
    rates: Floats, _known: NDArray[np.bool_], alpha: Floats, gamma: Floats
) -> tuple[Floats, Floats, Floats]:
    shape = (len(alpha), rates.shape[1])
    level = np.broadcast_to(rates[0], shape).copy()
    changes = np.diff(rates[: _FIRST_CHANGES + 1], axis=0)
    trend = np.broadcast_to(_middle_of_three(changes), shape).copy()
    missed = np.zeros(shape)
    # L' + T' without more than two temporaries: error correction form of the same recurrences.
    for rate in rates[1:]:
        level += trend
        error = rate - level
        missed += error * error
        error *= alpha
        level += error
        error *= gamma
        trend += error
    return level, trend, missed


def _with_gaps(
    rates: Floats, known: NDArray[np.bool_], alpha: Floats, gamma: Floats
) -> tuple[Floats, Floats, Floats]:
    """A period without a measurement leaves level and trend; the first one starts them."""
    shape = (len(alpha), rates.shape[1])
    level, trend = np.full(shape, np.nan), np.zeros(shape)
    missed = np.zeros(shape)
    seen = np.zeros(rates.shape[1], dtype=np.int64)
    start = _first_slope(rates, known)
    for rate, here in zip(rates, known, strict=True):
        new, old = here & (seen == 0), here & (seen > 0)
        error = np.where(old, rate - level - trend, 0.0)
        missed += error * error
        level = np.where(new, rate, np.where(old, level + trend + alpha * error, level))
        trend = np.where(new, start, trend + alpha * gamma * error)
        seen += here
    return level, trend, missed


def _first_slope(rates: Floats, known: NDArray[np.bool_]) -> Floats:
    """The median of the first changes a period between the measurements there are."""
    order, column = known.cumsum(axis=0), np.arange(rates.shape[1])
    places = [(order >= nth).argmax(axis=0) for nth in range(1, _FIRST_CHANGES + 2)]
    changes = [
        np.where(
            later > before,  # there is no such measurement otherwise
            (rates[later, column] - rates[before, column]) / np.maximum(later - before, 1),
            0.0,
        )
        for before, later in pairwise(places)
    ]
    return _middle_of_three(np.array(changes))


def _middle_of_three(changes: Floats) -> Floats:
    """The median down each column; rows that are missing are zero."""
    missing = np.zeros((_FIRST_CHANGES - len(changes), changes.shape[1]))
    middle: Floats = np.sort(np.concatenate([changes, missing]), axis=0)[_FIRST_CHANGES // 2]
    return middle
