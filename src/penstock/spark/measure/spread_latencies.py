"""Latencies of rows that are known in spans: so many rows, evenly spread between two latencies."""

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from penstock.model.observation import Floats


@dataclass(frozen=True)
class SpreadLatencies:
    """Spans of latencies as columns; the two ends of a span may be one moment.

    The rows within a latency are then a piecewise linear function of it, with steps at such
    moments, so that quantiles are exact, however few spans there are.
    """

    rows: Floats
    least_s: Floats
    most_s: Floats

    def rows_within(self, latency_s: float) -> float:
        """Rows that took no longer.

        >>> SpreadLatencies(np.array([100.0]), np.array([1.0]), np.array([3.0])).rows_within(1.5)
        25.0
        """
        width_s = self.most_s - self.least_s
        reached = (latency_s >= self.least_s).astype(np.float64)
        part = np.divide(latency_s - self.least_s, width_s, out=reached, where=width_s > 0)
        return float(self.rows @ np.clip(part, 0.0, 1.0))

    def quantile_s(self, share: float) -> float:
        """The latency that a share of the rows kept; of no rows there is none.

        >>> SpreadLatencies(np.array([100.0]), np.array([1.0]), np.array([3.0])).quantile_s(0.99)
        2.98
        """
        wanted = share * float(self.rows.sum())
        ends_s: list[float] = np.unique(np.concatenate([self.least_s, self.most_s])).tolist()
        place = min(bisect_left(ends_s, wanted, key=self.rows_within), len(ends_s) - 1)
        end_s = ends_s[place]
        if place == 0:
            return end_s
        at_once = float(self.rows[(self.least_s == end_s) & (self.most_s == end_s)].sum())
        before_s = ends_s[place - 1]
        before, after = self.rows_within(before_s), self.rows_within(end_s) - at_once
        if after <= wanted:
            return end_s
        return before_s + (wanted - before) / (after - before) * (end_s - before_s)
