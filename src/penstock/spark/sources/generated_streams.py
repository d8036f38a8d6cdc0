"""Generated streams: what has arrived by now, when it arrived, and the rows themselves.

Both sources of generated rows go by this: the one of a single stream, which is cut into as many
tasks as are wanted, and the backend of many, which a lane reads whole. Streams of one rate profile
share its arithmetic, and constant rates are one formula for all, so the cost of a look grows with
the number of different profiles rather than of streams.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.model.arrivals import Arrivals
from penstock.model.observation import Floats, Ints
from penstock.spark.sources.backends.backend import Bools
from penstock.workloads.generator import SCHEMA, Generator, uniform_of
from penstock.workloads.profiles import RateProfile

COLUMNS = "row BIGINT, key BIGINT, value DOUBLE, at TIMESTAMP"
ROWS_PER_CHUNK = 65_536
MOST_MOMENTS = 10_000  # of a range, whose arrivals are computed one by one


class GeneratedStreams:
    """Streams by number, all begun at `epoch_s`; None where a number has no generator."""

    def __init__(self, generators: Sequence[Generator | None], epoch_s: float) -> None:
        self._generators = generators
        self._epoch_s = epoch_s
        self._columns = _Columns(generators)

    def known(self, of: Ints) -> Bools:
        """Which of these streams have a generator."""
        return self._columns.known[of]

    def arrived(self, of: Ints, now_s: float, whole: bool = False) -> tuple[Ints, Bools]:
        """Rows of each stream by now, and whether they are all it will ever have.

        With `whole`, a bounded stream is there at once.
        """
        bound = self._columns.rows[of]
        rows = np.floor(self._columns.rows_by(now_s - self._epoch_s)[of]).astype(np.int64)
        bounded = bound >= 0
        rows = np.where(bounded, bound if whole else np.minimum(rows, bound), rows)
        return rows, bounded & (rows >= bound)

    def span_s(self, of: Ints, start: Ints, end: Ints) -> tuple[Floats, Floats]:
        """When the first and the last row of a range of each stream arrived."""
        first = self._columns.arrival_s(of, start)
        last = self._columns.arrival_s(of, np.maximum(end - 1, start))
        return self._epoch_s + first, self._epoch_s + last

    def arrivals(self, stream: int, start: int, end: int) -> Arrivals:
        """When the rows of a range arrived."""
        step = max(1, (end - start) // MOST_MOMENTS)
        rows = np.append(np.arange(start, end - 1, step), end - 1)
        at_s = self._epoch_s + self._columns.arrival_s(np.full(len(rows), stream), rows)
        return Arrivals(end - start, float(at_s[0]), float(at_s[-1]), float(at_s.mean()))

    def rows(self, of: Ints, row: Ints) -> pa.RecordBatch:
        """Rows of many streams."""
        columns = self._columns
        at_us = (self._epoch_s + columns.arrival_s(of, row)) * 1e6
        arrays = [
            pa.array(row),
            pa.array(columns.keys(of, row)),
            pa.array(uniform_of(row, columns.salt(1)[of])),
            pa.array(at_us.astype(np.int64)).cast(SCHEMA.field("at").type),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)

    def rows_of(self, stream: int, start: int, end: int) -> pa.RecordBatch:
        """A range of one stream: the same rows, faster, as nothing is looked up for each."""
        generator = self._generators[stream]
        assert generator is not None
        return generator.batch(start, end, self._epoch_s)


class _Columns:
    """Generators as columns, grouped by what they share."""

    def __init__(self, generators: Sequence[Generator | None]) -> None:
        spare = Generator(_silence())
        made = [spare if g is None else g for g in generators]
        self.known = np.array([g is not None for g in generators], dtype=bool)
        self.rows = np.array([-1 if g.rows is None else g.rows for g in made], dtype=np.int64)
        self._key_count = np.array([g.keys for g in made], dtype=np.int64)
        self._seed = [g.seed for g in made]
        self._salts: dict[int, Any] = {}
        numbers: dict[RateProfile, int] = {}
        self._profile = np.array([numbers.setdefault(g.rate, len(numbers)) for g in made], int)
        self._profiles = list(numbers)
        steady = [len(p.times_s) == 1 and p.rates_per_s[0] > 0 for p in self._profiles]
        rates = [
            p.rates_per_s[0] if s else np.nan for p, s in zip(self._profiles, steady, strict=True)
        ]
        self._rate = np.array(rates)[self._profile] if made else np.empty(0)
        self._uneven = [number for number, is_steady in enumerate(steady) if not is_steady]
        skewed: dict[tuple[int, float], list[int]] = {}
        for place, generator in enumerate(made):
            if generator.skew > 0:
                skewed.setdefault((generator.keys, generator.skew), []).append(place)
        self._skewed = [(made[places[0]], np.array(places)) for places in skewed.values()]

    def rows_by(self, elapsed_s: float) -> Floats:
        """Rows of each stream so long after it began."""
        rows: Floats = np.maximum(elapsed_s, 0.0) * self._rate
        for number in self._uneven:
            rows[self._profile == number] = self._profiles[number].rows_by(elapsed_s)
        return rows

    def arrival_s(self, of: Ints, row: Ints) -> Floats:
        """When rows of streams arrive."""
        arrival = (row + 1.0) / self._rate[of]
        for number in self._uneven:
            inside = np.flatnonzero(self._profile[of] == number)
            if len(inside):
                arrival[inside] = self._profiles[number].arrival_s(row[inside])
        return np.where(np.isfinite(arrival), arrival, 0.0)

    def salt(self, which: int) -> Any:
        """The random sequence of each stream: 0 for keys, 1 for values."""
        if which not in self._salts:
            salts = [(2 * seed + which) * 0xD1B54A32D192ED03 % 2**64 for seed in self._seed]
            self._salts[which] = np.array(salts, dtype=np.uint64)
        return self._salts[which]

    def keys(self, of: Ints, row: Ints) -> Ints:
        """The key of each row."""
        uniform = uniform_of(row, self.salt(0)[of])
        keys: Ints = (uniform * self._key_count[of]).astype(np.int64)
        for like, places in self._skewed:
            inside = np.flatnonzero(np.isin(of, places))
            if len(inside):
                keys[inside] = like.ranked(uniform[inside])
        return keys


@lru_cache(maxsize=1)
def _silence() -> RateProfile:
    return RateProfile((0.0,), (0.0,))
