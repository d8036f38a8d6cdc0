"""Generated streams by name, all at once: counts and rows are computed over many streams together.

Streams of one rate profile share its arithmetic, and constant rates are one formula for all, so the
cost of a look grows with the number of different profiles rather than of streams.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa

from penstock.errors import InvalidInput
from penstock.model.observation import Floats, Ints
from penstock.spark.sources.backends.backend import (
    Advance,
    Backend,
    Chunk,
    Discovered,
    Latest,
    Positions,
    Ranges,
    positions,
)
from penstock.workloads.generator import SCHEMA, Generator, uniform_of
from penstock.workloads.profiles import RateProfile

ROWS_PER_CHUNK = 65_536
UNKNOWN = "no generator has this name"


class GeneratorsBackend(Backend):
    """Options: `generators` (name -> generator), `epoch_s`, and `template` for names beyond them.

    A stream made after the template has its own seed, from its name. `metas` holds what streams
    declare of themselves.
    """

    def __init__(
        self, generators: Mapping[str, Generator], template: Generator | None, epoch_s: float,
        metas: Mapping[str, Mapping[str, Any]],
    ) -> None:  # fmt: skip
        self._generators: dict[str, Generator] = {}
        self._number: dict[str, int] = {}
        self._know(generators)
        self._listed = [Discovered(name, metas.get(name, {})) for name in generators]
        self._template = template
        self._epoch_s = epoch_s

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> "GeneratorsBackend":
        """Generators as their `to_json` gives them."""
        template = options.get("template")
        try:
            made = {name: _generator(value) for name, value in options["generators"].items()}
            spare = None if template is None else _generator(template)
        except (TypeError, KeyError, ValueError) as error:
            raise InvalidInput(f"generators: {error}.") from error
        epoch_s = float(options.get("epoch_s", 0.0))
        return cls(made, spare, epoch_s, options.get("metas", {}))

    @classmethod
    def schema(cls, options: Mapping[str, Any]) -> str:
        """The columns of every generated stream."""
        return "row BIGINT, key BIGINT, value DOUBLE, at TIMESTAMP"

    def discover(self) -> Sequence[Discovered]:
        """The streams that are listed."""
        return self._listed

    def first(self, streams: Sequence[str]) -> Positions:
        """Row 0."""
        return positions(np.zeros(len(streams), dtype=np.int64))

    def latest(self, streams: Sequence[str], since: Positions, whole: bool = False) -> Latest:
        """What has arrived by the clock."""
        of, columns = self._numbers(streams), self._columns
        known, bound = columns.known[of], columns.rows[of]
        arrived = np.floor(columns.rows_by(time.time() - self._epoch_s)[of]).astype(np.int64)
        bounded = bound >= 0
        end = np.where(bounded, np.minimum(arrived, bound), arrived)
        if whole:
            end = np.where(bounded, bound, end)
        end = np.where(known, np.maximum(end, since.minor), since.minor)
        first_s, last_s = self._span(of, since.minor, end)
        fault = [""] * len(of) if known.all() else np.where(known, "", UNKNOWN).tolist()
        ended = bounded & (end >= bound)
        return Latest(positions(end), end - since.minor, first_s, last_s, fault, ended)

    def advance(
        self, streams: Sequence[str], start: Positions, latest: Positions, rows: Ints
    ) -> Advance:
        """Rows are counted exactly."""
        end = np.minimum(start.minor + rows, latest.minor)
        first_s, last_s = self._span(self._numbers(streams), start.minor, end)
        return Advance(positions(end), end - start.minor, first_s, last_s)

    def read(self, ranges: Ranges, schema: pa.Schema) -> Iterator[Chunk]:
        """Rows made anew, many streams in one go."""
        numbers = self._numbers(ranges.streams)
        length = ranges.end.minor - ranges.start.minor
        before = np.cumsum(length) - length
        total = int(length.sum())
        for low in range(0, total, ROWS_PER_CHUNK):
            high = min(low + ROWS_PER_CHUNK, total)
            a = int(np.searchsorted(before, low, side="right")) - 1
            b = int(np.searchsorted(before, high, side="left"))
            among = np.arange(a, b)
            counts = np.minimum(before[a:b] + length[a:b], high) - np.maximum(before[a:b], low)
            of = np.repeat(among, counts)
            row = np.arange(low, high) - before[of] + ranges.start.minor[of]
            kept = counts > 0
            yield Chunk(self._rows(numbers[of], row), among[kept], counts[kept])

    def _rows(self, of: Ints, row: Ints) -> pa.RecordBatch:
        columns = self._columns
        at_us = (self._epoch_s + columns.arrival_s(of, row)) * 1e6
        arrays = [
            pa.array(row),
            pa.array(columns.keys(of, row)),
            pa.array(uniform_of(row, columns.salt(1)[of])),
            pa.array(at_us.astype(np.int64)).cast(SCHEMA.field("at").type),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)

    def _span(self, of: Ints, start: Ints, end: Ints) -> tuple[Floats, Floats]:
        first = self._columns.arrival_s(of, start)
        last = self._columns.arrival_s(of, np.maximum(end - 1, start))
        return self._epoch_s + first, self._epoch_s + last

    def _numbers(self, streams: Sequence[str]) -> Ints:
        """Places of streams in the columns; a name without a generator is at the first."""
        number = self._number
        if self._template is not None:
            new = [name for name in streams if name not in number]
            if new:
                made = [replace(self._template, seed=crc32(name.encode())) for name in new]
                self._know(dict(zip(new, made, strict=True)))
        return np.fromiter((number.get(name, 0) for name in streams), np.int64, len(streams))

    def _know(self, generators: Mapping[str, Generator]) -> None:
        self._generators |= generators
        self._number.update({name: place for place, name in enumerate(self._generators, 1)})
        self._columns = _Columns([None, *self._generators.values()])


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


def _generator(document: Mapping[str, Any]) -> Generator:
    return Generator(**{**document, "rate": _profile(json.dumps(document["rate"]))})


@lru_cache(maxsize=100_000)
def _profile(text: str) -> RateProfile:
    """Many streams have few profiles, and checking one takes longer than all else."""
    return RateProfile.from_json(text)


@lru_cache(maxsize=1)
def _silence() -> RateProfile:
    return RateProfile((0.0,), (0.0,))
