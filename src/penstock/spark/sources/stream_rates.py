"""Rows a second that come to each stream of a source, period by period.

A rate is taken between two counts. What waited when a stream was first seen, or seen again after
it was away, may have come at any time: it is no rate, and the stream's first one is unknown until
it was watched for half a period.
"""

import numpy as np

from penstock.model.observation import Floats, Ints
from penstock.spark.sources.backends.backend import Bools

PERIODS_KEPT = 40
LEAST_WATCHED = 0.5  # of a period; a rate over less says little


class StreamRates:
    """Follows the counts of rows that arrived at streams, by their number."""

    def __init__(self) -> None:
        self._rates: Floats = np.empty((0, 0))
        self._counted: Ints = np.empty(0, dtype=np.int64)  # rows arrived when last counted
        self._since_s: Floats = np.empty(0)  # when that was, by the monotonic clock
        self._watched: Bools = np.empty(0, dtype=bool)  # read at the last look

    def look(self, arrived: Ints, rows: Ints, steady_s: float) -> None:
        """These streams are read now, of all whose arrived rows are given."""
        more = len(arrived) - len(self._counted)
        if more > 0:
            self._counted = np.append(self._counted, np.zeros(more, dtype=np.int64))
            self._since_s = np.append(self._since_s, np.zeros(more))
            self._watched = np.append(self._watched, np.zeros(more, dtype=bool))
            unknown = np.full((more, self._rates.shape[1]), np.nan)
            self._rates = np.concatenate([self._rates, unknown])
        first = rows[~self._watched[rows]]
        self._counted[first], self._since_s[first] = arrived[first], steady_s
        self._watched[:] = False
        self._watched[rows] = True

    def measure(self, arrived: Ints, period_s: float, steady_s: float) -> None:
        """A period is over: one more rate of each stream, unknown where it was not watched."""
        watched_s = steady_s - self._since_s
        known = self._watched & (watched_s >= LEAST_WATCHED * period_s)
        rate = np.full(len(arrived), np.nan)
        came = np.maximum(arrived[known] - self._counted[known], 0)
        rate[known] = came / np.maximum(watched_s[known], 1e-3)
        self._rates = np.concatenate([self._rates, rate[:, None]], axis=1)[:, -PERIODS_KEPT:]
        self._counted[known], self._since_s[known] = arrived[known], steady_s

    def forget(self, kept: Bools) -> None:
        """Keep these streams only."""
        rows = np.flatnonzero(kept[: len(self._counted)])
        self._rates, self._counted = self._rates[rows], self._counted[rows]
        self._since_s, self._watched = self._since_s[rows], self._watched[rows]

    @property
    def measured(self) -> bool:
        """Whether a period has been measured at all."""
        return len(self._rates.T) > 0

    def history(self, rows: Ints) -> Floats:
        """Rates of streams, oldest first, NaN where unknown."""
        return self._rates[rows]

    def newest(self, rows: Ints) -> Floats:
        """Rates of streams in the last period; NaN where unknown, as for one never looked at."""
        newest = np.full(len(rows), np.nan)
        if self.measured:
            known = rows < len(self._rates)
            newest[known] = self._rates[rows[known], -1]
        return newest
