"""The one interface of forecasters, and the simplest of them."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from penstock.model.observation import Floats


class Forecaster(Protocol):
    """Guesses the rates of many streams from their history."""

    def forecast(self, history: Floats, steps: tuple[int, ...]) -> Floats:
        """Rates so many periods ahead: (streams, steps), never below zero.

        `history` is (streams, periods), oldest first, NaN where nothing was measured; a stream
        with no measurement at all is forecast as NaN.
        """


@dataclass(frozen=True)
class LastRate:
    """Tomorrow is as today: the newest measured rate, for every step.

    >>> LastRate().forecast(np.array([[1.0, 3.0], [2.0, np.nan]]), (1, 5)).tolist()
    [[3.0, 3.0], [2.0, 2.0]]
    """

    def forecast(self, history: Floats, steps: tuple[int, ...]) -> Floats:
        """The newest rate, repeated."""
        return np.repeat(newest(history)[:, None], len(steps), axis=1)


def newest(history: Floats) -> Floats:
    """The last measured rate of each stream; NaN where there is none."""
    count, length = history.shape
    if length == 0:
        return np.full(count, np.nan)
    last = history[:, -1].copy()
    gaps = np.flatnonzero(np.isnan(last))
    if len(gaps):
        known = ~np.isnan(history[gaps])
        place = length - 1 - known[:, ::-1].argmax(axis=1)
        last[gaps] = history[gaps, place]
    return last
