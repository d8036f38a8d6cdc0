"""The entries of many ranges in few round trips, on an executor.

A round asks for a page of each of some streams; a stream whose page was full comes first in the
next round, so that its rows stay in order. A server that is away is waited for with back-off.
"""

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import Unavailable
from penstock.spark.sources.backends.backend import Chunk, Malformed, Ranges
from penstock.spark.sources.backends.patience import Patience
from penstock.spark.sources.backends.payloads import PayloadForm, Records
from penstock.spark.sources.backends.redis_connection import RedisPlace, connect, sentence
from penstock.spark.sources.backends.redis_ids import texts, unpacked

PAGE_ROWS = 10_000
ROUND_ROWS = 40_000
STREAMS_PER_ROUND = 2_000


@dataclass
class _Pending:
    """A range that has not been read to its end."""

    row: int  # in the Ranges
    since: str  # the least id to read
    before: str
    rows_hint: int
    entries: int  # that must still come
    start: str


def read_ranges(
    place: RedisPlace, form: PayloadForm, field: str, ranges: Ranges, schema: pa.Schema
) -> Iterator[Chunk]:
    """Chunks of whole pages."""
    pending = deque(_pending(ranges))
    name = field.encode()
    while pending:
        asked = _next_round(pending)
        pages = _fetch(place, ranges, asked)
        yield _chunk(form, name, ranges, schema, asked, pages)
        for one, page in reversed(list(zip(asked, pages, strict=True))):
            if len(page) == PAGE_ROWS:
                one.since = "(" + page[-1][0].decode()
                one.rows_hint = max(one.rows_hint - len(page), 0)
                pending.appendleft(one)


def _pending(ranges: Ranges) -> Iterator[_Pending]:
    ms, seq, number = unpacked(ranges.start)
    end_ms, end_seq, end_number = unpacked(ranges.end)
    starts, ends = texts(ms, seq), texts(end_ms, end_seq)
    hints, entries = ranges.rows.tolist(), (end_number - number).tolist()
    for row in np.flatnonzero(~ranges.start.same(ranges.end)).tolist():
        yield _Pending(row, starts[row], "(" + ends[row], hints[row], entries[row], starts[row])


def _next_round(pending: deque[_Pending]) -> list[_Pending]:
    asked: list[_Pending] = []
    rows = 0
    while pending and len(asked) < STREAMS_PER_ROUND and (rows < ROUND_ROWS or not asked):
        asked.append(pending.popleft())
        rows += min(asked[-1].rows_hint, PAGE_ROWS)
    return asked


def _fetch(place: RedisPlace, ranges: Ranges, asked: list[_Pending]) -> list[list[Any]]:
    patience = Patience()
    while True:
        try:
            with sentence(place):
                pipeline = connect(place).pipeline(transaction=False)
                for one in asked:
                    pipeline.execute_command(
                        "XRANGE", ranges.streams[one.row], one.since, one.before, "COUNT", PAGE_ROWS
                    )
                found: list[list[Any]] = pipeline.execute()
                return found
        except Unavailable as away:
            time.sleep(patience.next_s(away))


def _chunk(
    form: PayloadForm, field: bytes, ranges: Ranges, schema: pa.Schema,
    asked: list[_Pending], pages: list[list[Any]],
) -> Chunk:  # fmt: skip
    ids = [entry[0].decode() for page in pages for entry in page]
    values = [_value(entry[1], field) for page in pages for entry in page]
    rows = np.array([one.row for one in asked], dtype=np.int64)
    range_of = np.repeat(rows, [len(page) for page in pages])
    lacking: list[Malformed] = []
    if any(value is None for value in values):
        entries = [entry[1] for page in pages for entry in page]
        bare = [number for number, value in enumerate(values) if value is None]
        reason = f"the entry has no field {field.decode()!r}"
        lacking = [
            Malformed(ranges.streams[range_of[n]], ids[n], reason, b" ".join(entries[n]))
            for n in bare
        ]
        ids = [text for text, value in zip(ids, values, strict=True) if value is not None]
        range_of = np.delete(range_of, bare)
        values = [value for value in values if value is not None]
    stamp_ms = np.array([int(text.partition("-")[0]) for text in ids], dtype=np.int64)
    made = form.chunk(Records(values, range_of, stamp_ms, ids), ranges.streams, schema)
    more = [*lacking, *_gone(ranges, asked, pages)]
    return replace(made, malformed=[*made.malformed, *more]) if more else made


def _value(pairs: list[bytes], field: bytes) -> bytes | None:
    if pairs[0] == field:
        return pairs[1]
    return next((pairs[n + 1] for n in range(2, len(pairs), 2) if pairs[n] == field), None)


def _gone(ranges: Ranges, asked: list[_Pending], pages: list[list[Any]]) -> Iterator[Malformed]:
    """A letter for each range of which entries were removed after they were admitted."""
    for one, page in zip(asked, pages, strict=True):
        one.entries -= len(page)
        if len(page) < PAGE_ROWS and one.entries > 0:
            reason = f"{one.entries} entries from here on were removed before they were read"
            yield Malformed(ranges.streams[one.row], one.start, reason, b"")
