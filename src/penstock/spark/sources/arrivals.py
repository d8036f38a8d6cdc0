"""When admitted rows arrived: as the backend reports, or as this runner first saw them."""

import numpy as np

from penstock.model.observation import Floats, Ints
from penstock.spark.sources.backends.backend import Bools

MOST_GROUPS = 4


class Sightings:
    """For each stream, when its waiting rows were first seen and when they last grew."""

    def __init__(self) -> None:
        self._first_s: Floats = np.empty(0)
        self._last_s: Floats = np.empty(0)
        self._waiting: Ints = np.empty(0, dtype=np.int64)

    def look(self, streams: Ints, waiting: Ints, count: int, now_s: float) -> None:
        """So many rows wait at streams now, of `count` streams in all."""
        grown = count - len(self._first_s)
        if grown > 0:
            self._first_s = np.concatenate([self._first_s, np.full(grown, now_s)])
            self._last_s = np.concatenate([self._last_s, np.full(grown, now_s)])
            self._waiting = np.concatenate([self._waiting, np.zeros(grown, dtype=np.int64)])
        before = self._waiting[streams]
        # What was seen later than now was seen before the machine's clock was set back.
        self._first_s[streams] = np.minimum(self._first_s[streams], now_s)
        self._last_s[streams] = np.minimum(self._last_s[streams], now_s)
        self._first_s[streams[before == 0]] = now_s
        self._last_s[streams[waiting > before]] = now_s
        self._waiting[streams] = waiting

    def forget(self, kept: Bools) -> None:
        """Keep these streams only."""
        rows = np.flatnonzero(kept[: len(self._first_s)])
        self._first_s, self._last_s = self._first_s[rows], self._last_s[rows]
        self._waiting = self._waiting[rows]

    def take(self, streams: Ints, rows: Ints) -> tuple[Floats, Floats]:
        """Rows of streams are admitted: when the first and the last of them were seen."""
        first, last = self._first_s[streams], self._last_s[streams]
        waiting = self._waiting[streams]
        share = np.minimum(1.0, rows / np.maximum(waiting, 1))
        end = first + (last - first) * share
        self._first_s[streams] = end
        self._waiting[streams] = np.maximum(waiting - rows, 0)
        return first, end


def grouped(rows: Ints, first_s: Floats, last_s: Floats) -> list[list[float]]:
    """Rows with first and last arrival, streams of like age together: few, whatever their number.

    >>> grouped(np.array([2, 2]), np.array([1.0, 9.0]), np.array([2.0, 9.5]))
    [[2, 1.0, 2.0], [2, 9.0, 9.5]]
    """
    if len(rows) == 0:
        return []
    order = np.argsort(first_s + last_s, kind="stable")
    done = np.cumsum(rows[order])
    group = np.minimum((done - 1) * MOST_GROUPS // max(int(done[-1]), 1), MOST_GROUPS - 1)
    groups = []
    for number in np.unique(group).tolist():
        of = order[group == number]
        groups.append(
            [
                int(rows[of].sum()),
                round(float(np.average(first_s[of], weights=rows[of])), 6),
                round(float(np.average(last_s[of], weights=rows[of])), 6),
            ]
        )
    return groups
