"""Redis Streams: every key that holds a stream is one, its ids are its positions.

The runner asks for many streams in one round trip (`redis_scripts`), executors read ranges of many
streams in one pipeline (`redis_reading`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import InvalidInput, Unavailable
from penstock.masking import masked_url
from penstock.model.observation import Floats, Ints
from penstock.spark.sources.backends.backend import (
    Advance,
    Backend,
    Chunk,
    Discovered,
    Latest,
    Positions,
    Ranges,
)
from penstock.spark.sources.backends.payloads import PayloadForm, group_of, start_and_lost
from penstock.spark.sources.backends.redis_connection import RedisPlace, connect, sentence
from penstock.spark.sources.backends.redis_ids import clock_s, holdable, packed, texts, unpacked
from penstock.spark.sources.backends.redis_reading import read_ranges
from penstock.spark.sources.backends.redis_scripts import (
    CUT,
    CUT_NUMBERS,
    OTHER_TYPE,
    REACH,
    REACH_NUMBERS,
    STREAM,
    TELL,
    run_script,
)

SCAN_COUNT = 2_000
MOST_CUT_ROWS = 50_000  # looking for the end of more would hold up the server


@dataclass(frozen=True)
class _Reach:
    """What the server says of each stream; columns."""

    kind: Ints
    left: Ints
    added: Ints
    last_ms: Ints
    last_seq: Ints
    next_ms: Ints  # the first entry not read yet; 0 where there is none
    next_seq: Ints


class RedisBackend(Backend):
    """Streams of one Redis server, version 7 or later."""

    def __init__(
        self, place: RedisPlace, keys: str, form: PayloadForm, field: str, start: str, lost: str,
        group: str | None = None,
    ) -> None:  # fmt: skip
        self._place, self._keys, self._form, self._field = place, keys, form, field
        self._start, self._lost, self._group = start, lost, group
        # Arrival of the oldest waiting entry as `latest` saw it: `advance` is not to ask again.
        self._first_s: dict[str, float] = {}
        # Entries that are gone and that the next range passes over, when it is allowed to.
        self._skipped: dict[str, int] = {}

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> "RedisBackend":
        """`url`, `keys`; `field`, `start`, `lost`, `group`, `password_env`; and the values."""
        field = options.get("field", "value")
        if not isinstance(field, str) or not field:
            raise InvalidInput(f"field is {field!r}; it must be the name of an entry's field.")
        form = PayloadForm.from_options(options)
        place = RedisPlace.from_options(options)
        keys = options.get("keys", "*")
        return cls(place, keys, form, field, *start_and_lost(options), group_of(options))

    def check(self, schema: pa.Schema) -> None:
        self._form.check(schema)

    def discover(self) -> Sequence[Discovered]:
        """Keys that fit the pattern and hold a stream, by name."""
        with sentence(self._place):
            found = connect(self._place).scan_iter(self._keys, SCAN_COUNT, _type="stream")
            keys = set(found)
        return [Discovered(name) for name in sorted(filter(None, map(_name, keys)))]

    def nothing_there(self) -> str | None:
        """Whether any key fits and holds a stream."""
        if self.discover():
            return None
        place = masked_url(self._place.url)
        return f"no key of Redis at {place} fits the pattern {self._keys!r} and holds a stream yet"

    def first(self, streams: Sequence[str]) -> Positions:
        """The oldest entry there is, or the place after the newest."""
        reach = self._reach(streams, [""] * len(streams))
        if self._start == "now":
            return packed(reach.last_ms, reach.last_seq + (reach.added > 0), reach.added)
        nought = np.zeros(len(streams), dtype=np.int64)
        return packed(nought, nought, reach.added - reach.left)

    def latest(self, streams: Sequence[str], since: Positions, whole: bool = False) -> Latest:
        """How far each stream reaches, and whether it is still the stream that was read."""
        ms, seq, number = unpacked(since)
        reach = self._reach(streams, texts(ms, seq))
        waiting = reach.next_ms + reach.next_seq > 0
        # Where no entry waits the position stays as it is: deleted entries alone move nothing.
        end = packed(
            np.where(waiting, reach.last_ms, ms),
            np.where(waiting, reach.last_seq + 1, seq),
            np.where(waiting, reach.added, number),
        )
        faults = self._faults(reach, ms, seq, number)
        sound = np.array([not fault for fault in faults], dtype=bool)
        rows = np.where(waiting & sound, np.minimum(reach.added - number, reach.left), 0)
        first_s: Floats = np.where(rows > 0, clock_s(reach.next_ms), np.nan)
        last_s: Floats = np.where(rows > 0, clock_s(reach.last_ms), np.nan)
        self._first_s = dict(zip(streams, first_s.tolist(), strict=True))
        lost = _removed_unread(reach, number)
        self._skipped = {streams[row]: int(lost[row]) for row in np.flatnonzero(lost).tolist()}
        never_ends = np.zeros(len(streams), dtype=bool)
        return Latest(end, np.maximum(rows, 0), first_s, last_s, faults, never_ends)

    def _faults(self, reach: _Reach, ms: Ints, seq: Ints, number: Ints) -> list[str]:
        back = (reach.last_ms < ms) | ((reach.last_ms == ms) & (reach.last_seq < seq - 1))
        anew = reach.added < number
        lost = _removed_unread(reach, number)
        faults = [""] * len(ms)
        suspect = (
            (reach.kind != STREAM) | back | anew | (lost > 0)
            | ~holdable(reach.last_ms, reach.last_seq)
        )  # fmt: skip
        for row in np.flatnonzero(suspect).tolist():
            if reach.kind[row] == OTHER_TYPE:
                faults[row] = "its key holds no stream"
            elif reach.kind[row] != STREAM:
                # A stream that was declared but never written is not there yet, and not at fault.
                faults[row] = "its key is gone" if ms[row] or seq[row] else ""
            elif not holdable(reach.last_ms[row], reach.last_seq[row]):
                faults[row] = "its newest id is larger than positions can hold"
            elif back[row] or anew[row]:
                faults[row] = (
                    f"it went back in time: {number[row]} entries were added when it was read up "
                    f"to {ms[row]}-{seq[row]}, now {reach.added[row]} up to "
                    f"{reach.last_ms[row]}-{reach.last_seq[row]}"
                )
            elif self._lost == "suspend":
                faults[row] = f"{lost[row]} entries were removed before they were read"
        return faults

    def advance(
        self, streams: Sequence[str], start: Positions, latest: Positions, rows: Ints
    ) -> Advance:
        """Ends by entry counts where all is taken, and by asking the server elsewhere."""
        number, end_number = unpacked(start)[2], unpacked(latest)[2]
        waiting = end_number - number
        first_s = np.array([self._first_s.get(name, np.nan) for name in streams])
        last_s = np.where(waiting > 0, clock_s(unpacked(latest)[0]), np.nan)
        whole = Advance(latest, np.maximum(np.minimum(rows, waiting), 0), first_s, last_s)
        partly = np.flatnonzero(rows < waiting)
        return whole if len(partly) == 0 else self._cut(streams, start, whole, rows, partly)

    def _cut(
        self, streams: Sequence[str], start: Positions, whole: Advance, rows: Ints, partly: Ints
    ) -> Advance:
        """Some of the ranges ended after so many rows."""
        names = [streams[row] for row in partly.tolist()]
        ms, seq, number = unpacked(start.take(partly))
        wanted = np.clip(rows[partly], 1, MOST_CUT_ROWS).tolist()
        arguments = [x for pair in zip(texts(ms, seq), wanted, strict=True) for x in pair]
        with sentence(self._place):
            table = run_script(connect(self._place), CUT, CUT_NUMBERS, names, arguments)
        got, first_ms, _, last_ms, last_seq = table.T
        passed = np.array([self._skipped.get(name, 0) for name in names], dtype=np.int64)
        found = got > 0
        end = packed(
            np.where(found, last_ms, ms),
            np.where(found, last_seq + 1, seq),
            number + np.where(found, got + passed, 0),
        )
        # Where entries were deleted between others, counts say less than ids: not beyond `latest`.
        end_ms, end_seq, _ = unpacked(whole.end.take(partly))
        within = (last_ms < end_ms) | ((last_ms == end_ms) & (last_seq < end_seq))
        at = partly[within]
        taken, first_s, last_s = whole.rows.copy(), whole.first_s.copy(), whole.last_s.copy()
        taken[at] = got[within]
        first_s[at] = np.where(found, clock_s(first_ms), np.nan)[within]
        last_s[at] = np.where(found, clock_s(last_ms), np.nan)[within]
        return Advance(whole.end.put(at, end.take(within)), taken, first_s, last_s)

    def read(self, ranges: Ranges, schema: pa.Schema) -> Iterator[Chunk]:
        """The entries of ranges, many streams in one pipeline."""
        return read_ranges(self._place, self._form, self._field, ranges, schema)

    def committed(self, streams: Sequence[str], upto: Positions) -> None:
        """Set the group of each stream to the last entry read; it is made where there is none."""
        if self._group is None:
            return
        ms, seq, number = unpacked(upto)
        moved = np.flatnonzero(seq > 0)  # a position is one after an id, but before the first entry
        last = texts(ms[moved], seq[moved] - 1)
        arguments: list[Any] = []
        for id_, entries in zip(last, number[moved].tolist(), strict=True):
            arguments += (self._group, id_, entries)
        names = [streams[row] for row in moved.tolist()]
        with sentence(self._place):
            run_script(connect(self._place), TELL, 0, names, arguments, "EVAL")

    def _reach(self, streams: Sequence[str], since: Sequence[str]) -> _Reach:
        with sentence(self._place):
            table = run_script(connect(self._place), REACH, REACH_NUMBERS, streams, since)
        if (table[:, 2] < 0).any():
            raise Unavailable("Redis 7 or later is needed: this server counts no added entries.")
        return _Reach(*(table[:, column].copy() for column in range(REACH_NUMBERS)))


def _removed_unread(reach: _Reach, number: Ints) -> Ints:
    """Entries that were added after those read and are gone: trimmed or deleted."""
    gone: Ints = np.maximum(reach.added - reach.left - number, 0)
    return gone


def _name(key: bytes) -> str | None:
    """A stream's name is text; keys that are not stay unread."""
    try:
        return key.decode()
    except UnicodeDecodeError:
        return None
