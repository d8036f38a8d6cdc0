"""Generated streams by name, as a backend of the `penstock` source."""

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
from penstock.model.observation import Ints
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
from penstock.spark.sources.generated_streams import COLUMNS, ROWS_PER_CHUNK, GeneratedStreams
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import RateProfile

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
        self._epoch_s = epoch_s
        self._know(generators)
        self._listed = [Discovered(name, metas.get(name, {})) for name in generators]
        self._template = template

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
        return COLUMNS

    def discover(self) -> Sequence[Discovered]:
        return self._listed

    def latest(self, streams: Sequence[str], since: Positions, whole: bool = False) -> Latest:
        of = self._numbers(streams)
        known = self._streams.known(of)
        arrived, ended = self._streams.arrived(of, time.time(), whole)
        end = np.where(known, np.maximum(arrived, since.minor), since.minor)
        first_s, last_s = self._streams.span_s(of, since.minor, end)
        fault = [""] * len(of) if known.all() else np.where(known, "", UNKNOWN).tolist()
        return Latest(positions(end), end - since.minor, first_s, last_s, fault, ended)

    def advance(
        self, streams: Sequence[str], start: Positions, latest: Positions, rows: Ints
    ) -> Advance:
        end = np.minimum(start.minor + rows, latest.minor)
        first_s, last_s = self._streams.span_s(self._numbers(streams), start.minor, end)
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
            if kept.sum() == 1:
                made = self._streams.rows_of(int(numbers[of[0]]), int(row[0]), int(row[-1]) + 1)
            else:
                made = self._streams.rows(numbers[of], row)
            yield Chunk(made, among[kept], counts[kept])

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
        self._streams = GeneratedStreams([None, *self._generators.values()], self._epoch_s)


def _generator(document: Mapping[str, Any]) -> Generator:
    return Generator(**{**document, "rate": _profile(json.dumps(document["rate"]))})


@lru_cache(maxsize=100_000)
def _profile(text: str) -> RateProfile:
    """Many streams have few profiles, and checking one takes longer than all else."""
    return RateProfile.from_json(text)
