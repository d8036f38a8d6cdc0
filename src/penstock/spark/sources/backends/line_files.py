"""Files of lines, JSON or CSV: a record belongs to the range that holds its line break."""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.model.observation import Floats, Ints
from penstock.spark.sources.backends.backend import Chunk, Malformed, Positions, Ranges
from penstock.spark.sources.backends.decoding import decode, decode_lines
from penstock.spark.sources.backends.directory import SLACK, Directory

SAMPLE_BYTES = 65_536
FIRST_GUESS_BYTES = 100.0
BLOCK_BYTES = 8 << 20  # of one file read at once
CHUNK_BYTES = 4 << 20  # of text parsed at once
LOOK_BACK_BYTES = 65_536
SEARCHES, SEARCH_PAUSE_S = 4, 0.5  # for a file that is not found


@dataclass(frozen=True)
class _Lines:
    """How long the lines of a stream are, as of the last sample."""

    row_bytes: float
    header_bytes: int  # of a first line that is no row
    sampled_bytes: int  # how long the file was then


@dataclass
class _Text:
    """Whole lines of several ranges, to be parsed together."""

    parts: list[bytes] = field(default_factory=list)
    ranges: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)  # byte at which each part begins in its file
    size: int = 0


UNKNOWN = _Lines(FIRST_GUESS_BYTES, 0, 0)


class LineFiles:
    """How far files of lines reach, and their records."""

    def __init__(self, directory: Directory, form: str, header: bool) -> None:
        self._directory = directory
        self._form = form
        self._header = header
        self._lines_of: dict[str, _Lines] = {}

    def reach(
        self, streams: Sequence[str], since: Positions, found: Positions, fault: list[str]
    ) -> tuple[Positions, Ints, list[str]]:
        """Where files end, about how many rows that is, and faults."""
        read = np.where(since.major == found.major, since.minor, 0)
        grown = np.flatnonzero(found.minor > read)
        self._sample(streams, found, grown)
        waiting = np.zeros(len(streams), dtype=np.int64)
        some = [streams[number] for number in grown.tolist()]
        waiting[grown] = self._rows(some, read[grown], found.minor[grown])
        return found, waiting, fault

    def advance(
        self, streams: Sequence[str], start: Positions, latest: Positions, rows: Ints
    ) -> tuple[Positions, Ints]:
        """Bytes for so many rows, by the mean of each stream."""
        begin = np.where(start.major == latest.major, start.minor, 0)
        row_bytes, header_bytes = self._lengths(streams)
        header = np.maximum(header_bytes - begin, 0)
        wanted = begin + header + np.maximum(rows * row_bytes, 1).astype(np.int64)
        # What would be left of less than a row is taken along, or it would count as one.
        end = np.where(wanted + row_bytes > latest.minor, latest.minor, wanted)
        return Positions(latest.major, end), self._rows(streams, begin, end)

    def read(self, ranges: Ranges, schema: pa.Schema) -> Iterator[Chunk]:
        """Chunks of whole lines."""
        text = _Text()
        lost: list[Malformed] = []
        for number, name in enumerate(ranges.streams):
            for start, part in self._lines(ranges, number, name, lost):
                text.parts.append(part)
                text.ranges.append(number)
                text.starts.append(start)
                text.size += len(part)
                if text.size >= CHUNK_BYTES:
                    yield self._chunk(text, ranges, schema, lost)
                    text, lost = _Text(), []
        if text.parts or lost:
            yield self._chunk(text, ranges, schema, lost)

    def _rows(self, streams: Sequence[str], begin: Ints, end: Ints) -> Ints:
        """About how many rows ranges of bytes hold; at least one, or nobody would read them.

        Rows are counted from the start of a file, so that what is rounded up for one range is
        missing from the next: the counts of many small ranges add up to that of the whole.
        """
        row_bytes, header_bytes = self._lengths(streams)

        def until(place: Ints) -> Ints:
            counted: Floats = np.rint(np.maximum(place - header_bytes, 0) / row_bytes)
            return counted.astype(np.int64)

        rows: Ints = np.maximum(until(end) - until(begin), 1)
        return rows

    def _lengths(self, streams: Sequence[str]) -> tuple[Floats, Ints]:
        known = [self._lines_of.get(name, UNKNOWN) for name in streams]
        row_bytes = np.array([lines.row_bytes for lines in known], dtype=np.float64)
        return row_bytes, np.array([lines.header_bytes for lines in known], dtype=np.int64)

    def _sample(self, streams: Sequence[str], found: Positions, grown: Ints) -> None:
        """Learn how long the lines of new files are, and anew whenever one is twice as long."""
        if len(self._lines_of) > 2 * len(streams) + SLACK:  # of streams that left
            known = self._lines_of
            self._lines_of = {name: known[name] for name in streams if name in known}
        for number in grown.tolist():
            name, size = streams[number], int(found.minor[number])
            lines = self._lines_of.get(name, UNKNOWN)
            if size < 2 * lines.sampled_bytes:
                continue
            path = self._directory.path_of(name, int(found.major[number]))
            learnt = None if path is None else self._sampled(path, size, lines)
            if learnt is not None:
                self._lines_of[name] = learnt

    def _sampled(self, path: Path, size: int, before: _Lines) -> _Lines | None:
        """From the newest lines: they say most about those to come."""
        start = max(0, size - SAMPLE_BYTES)
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except OSError:
            return None
        try:
            text = os.pread(descriptor, size - start, start)
        finally:
            os.close(descriptor)
        header_bytes = before.header_bytes
        first = 0 if start == 0 and not self._header else text.find(b"\n") + 1
        if self._header and start == 0:
            header_bytes = first
        last = text.rfind(b"\n") + 1
        count = text.count(b"\n", first, last)
        if count:
            return _Lines((last - first) / count, header_bytes, size)
        if len(text) < SAMPLE_BYTES:
            return None  # not one whole line yet
        return _Lines(float(SAMPLE_BYTES), header_bytes, size)  # or longer

    def _lines(
        self, ranges: Ranges, number: int, name: str, lost: list[Malformed]
    ) -> Iterator[tuple[int, bytes]]:
        """Whole lines of a range with the byte they begin at, in blocks."""
        begin = (int(ranges.start.major[number]), int(ranges.start.minor[number]))
        inode, end = int(ranges.end.major[number]), int(ranges.end.minor[number])
        start = begin[1]
        if begin[0] != inode:
            start = 0
            if begin[0]:  # rotated: the last line of the old file may have had no line break
                yield from self._rest(name, *begin)
        path = self._find(name, inode)
        if path is None:
            reason = f"the file vanished after bytes {start} to {end} had been admitted"
            lost.append(Malformed(name, str(start), reason, b""))
            return
        descriptor = os.open(path, os.O_RDONLY)
        try:
            yield from self._blocks(descriptor, start, end)
        finally:
            os.close(descriptor)

    def _blocks(self, descriptor: int, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        at = start
        carried = b"" if start == 0 else _open_line(descriptor, start)
        origin = start - len(carried)
        while at < end:
            data = os.pread(descriptor, min(BLOCK_BYTES, end - at), at)
            if not data:
                return
            at += len(data)
            data = carried + data
            cut = data.rfind(b"\n") + 1
            carried = data[cut:]
            if cut:
                lines = data[:cut]
                if self._header and origin == 0:
                    skipped = lines.find(b"\n") + 1
                    origin, lines = origin + skipped, lines[skipped:]
                if lines:
                    yield origin, lines
                origin += len(lines)

    def _rest(self, name: str, inode: int, start: int) -> Iterator[tuple[int, bytes]]:
        """A last line without a line break, in a file that was replaced."""
        path = self._directory.path_of(name, inode)
        if path is None:
            return
        descriptor = os.open(path, os.O_RDONLY)
        try:
            line = _open_line(descriptor, start)
            if line.strip():
                yield start - len(line), line + b"\n"
        finally:
            os.close(descriptor)

    def _find(self, name: str, inode: int) -> Path | None:
        for attempt in range(SEARCHES):
            path = self._directory.path_of(name, inode)
            if path is not None:
                return path
            if attempt + 1 < SEARCHES:
                time.sleep(SEARCH_PAUSE_S)
                self._directory.forget()
        return None

    def _chunk(
        self, text: _Text, ranges: Ranges, schema: pa.Schema, lost: list[Malformed]
    ) -> Chunk:
        of = np.array(text.ranges, dtype=np.int64)
        decoded = decode_lines(b"".join(text.parts), self._form, schema) if text.parts else None
        if decoded is not None:
            counts = np.array([part.count(b"\n") for part in text.parts], dtype=np.int64)
            return Chunk(decoded.rows, of, counts, lost)
        records: list[bytes] = []
        part_of: list[int] = []
        offset: list[int] = []
        for place, (part, start) in enumerate(zip(text.parts, text.starts, strict=True)):
            lines = part.split(b"\n")[:-1]
            records += lines
            part_of += [place] * len(lines)
            lengths = np.cumsum([0] + [len(line) + 1 for line in lines])[:-1]
            offset += (start + lengths).tolist()
        slow = decode(records, self._form, schema)
        bad = [
            Malformed(
                ranges.streams[text.ranges[part_of[record]]], str(offset[record]), reason,
                records[record],
            )
            for record, reason in slow.bad
        ]  # fmt: skip
        counts = np.bincount(
            np.array(part_of, dtype=np.int64)[slow.records], minlength=len(text.parts)
        )
        return Chunk(slow.rows, of, counts.astype(np.int64), [*lost, *bad])


def _open_line(descriptor: int, end: int) -> bytes:
    """What lies between the last line break before `end` and `end`."""
    found = b""
    at = end
    while at > 0:
        low = max(0, at - LOOK_BACK_BYTES)
        data = os.pread(descriptor, at - low, low)
        cut = data.rfind(b"\n") + 1
        found = data[cut:] + found
        if cut:
            break
        at = low
    return found
