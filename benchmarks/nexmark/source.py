"""Nexmark's events as streams that come in real time, beside files of the same events.

A backend of the project's own kind (docs/your-own-source.md): events are functions of their number,
so a stream holds nothing and any range of it can be read again. The i-th event of a kind is in
stream i modulo the number of streams, so that several lanes share a kind.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.nexmark.events import EPOCH_US, SCHEMAS, SHARES, Events, events_before, numbers
from penstock import Streams
from penstock.errors import InvalidInput
from penstock.model.observation import Floats, Ints
from penstock.sources import Advance, Backend, Chunk, Discovered, Latest, Positions, Ranges
from penstock.sources import positions as at_positions
from penstock.workloads.profiles import RateProfile

ROWS_PER_CHUNK = 65_536


def site(
    kind: str, rate: RateProfile, *, events: int | None = None, seed: int = 1, streams: int = 2,
    begin_s: float = EPOCH_US / 1e6,
) -> Streams:  # fmt: skip
    """Events of a kind as a source: all there are, or those among the first so many of all kinds.

    They begin to come at `begin_s`, which is the event time of the first as well; those of a moment
    that has passed are there at once.
    """
    return Streams(
        backend="benchmarks.nexmark.source:AuctionSite",
        schema=SCHEMAS[kind],
        options={
            "kind": kind, "rate": json.loads(rate.to_json()), "events": events, "seed": seed,
            "streams": streams, "begin_s": begin_s,
        },
    )  # fmt: skip


class AuctionSite(Backend):
    """Options: those of `site`. A position is (0, how many of its events were read)."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._kind, self._bound = options["kind"], options["events"]
        self._begin_s, count = options["begin_s"], options["streams"]
        self._rate = RateProfile.from_json(json.dumps(options["rate"]))
        self._events = Events(options["seed"], self._rate, round(self._begin_s * 1e6))
        self._places = {f"{self._kind}-{place:03d}": place for place in range(count)}

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> "AuctionSite":
        if (kind := options.get("kind")) not in SHARES:
            raise InvalidInput(f"kind is {kind!r}; allowed: {', '.join(SHARES)}.")
        return cls(options)

    def discover(self) -> Sequence[Discovered]:
        return [Discovered(name) for name in self._places]

    def latest(self, streams: Sequence[str], since: Positions, whole: bool = False) -> Latest:
        come = int(self._rate.rows_by(time.time() - self._begin_s))
        if self._bound is not None:
            come = self._bound if whole else min(come, self._bound)
        of_kind = events_before(self._kind, np.array([come]))
        here = (of_kind - self._of(streams) + len(self._places) - 1) // len(self._places)
        end = np.maximum(here, since.minor)
        first_s, last_s = self._span_s(streams, since.minor, end)
        ended = np.full(len(streams), come == self._bound)
        fault = [""] * len(streams)
        return Latest(at_positions(end), end - since.minor, first_s, last_s, fault, ended)

    def advance(
        self, streams: Sequence[str], start: Positions, latest: Positions, rows: Ints
    ) -> Advance:
        end = np.minimum(start.minor + rows, latest.minor)
        return Advance(
            at_positions(end), end - start.minor, *self._span_s(streams, start.minor, end)
        )

    def read(self, ranges: Ranges, schema: pa.Schema) -> Iterator[Chunk]:
        of = self._of(ranges.streams)
        for number, (first, last) in enumerate(
            zip(ranges.start.minor.tolist(), ranges.end.minor.tolist(), strict=True)
        ):
            for low in range(first, last, ROWS_PER_CHUNK):
                row = np.arange(low, min(low + ROWS_PER_CHUNK, last), dtype=np.int64)
                table = self._events.table(self._kind, self._numbers(of[number], row))
                (rows,) = table.select(schema.names).combine_chunks().to_batches()
                yield Chunk(rows.cast(schema), np.array([number]), np.array([len(row)]))

    def _of(self, streams: Sequence[str]) -> Ints:
        return np.array([self._places[name] for name in streams], dtype=np.int64)

    def _numbers(self, place: Ints, row: Ints) -> Ints:
        return numbers(self._kind, row * len(self._places) + place)

    def _span_s(self, streams: Sequence[str], start: Ints, end: Ints) -> tuple[Floats, Floats]:
        """When the first and the last event of a range of each stream came."""
        of = self._of(streams)
        ends = (self._numbers(of, row) for row in (start, np.maximum(end - 1, start)))
        first_s, last_s = (self._begin_s + self._rate.arrival_s(number) for number in ends)
        return first_s, last_s
