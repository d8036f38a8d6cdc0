"""Files of lines, JSON or CSV: a record belongs to the range that holds its line break."""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.model.observation import Ints
from penstock.spark.sources.backends.backend import Chunk, Malformed, Positions, Ranges
from penstock.spark.sources.backends.decoding import decode, decode_lines
from penstock.spark.sources.backends.directory import Directory

SAMPLE_BYTES = 65_536
FIRST_GUESS_BYTES = 100.0
BLOCK_BYTES = 8 << 20  # of one file read at once
CHUNK_BYTES = 4 << 20  # of text parsed at once
LOOK_BACK_BYTES = 65_536
SEARCHES, SEARCH_PAUSE_S = 4, 0.5  # for a file that is not found


@dataclass
class _Text:
    """Whole lines of several ranges, to be parsed together."""

    parts: list[bytes] = field(default_factory=list)
    ranges: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)  # byte at which each part begins in its file
    size: int = 0


class LineFiles:
    """How far files of lines reach, and their records."""

    def __init__(self, directory: Directory, form: str, header: bool) -> None:
        self._directory = directory
        self._form = form
        self._header = header
        self._row_bytes = FIRST_GUESS_BYTES
        self._sampled = 0

    def reach(
        self, streams: Sequence[str], since: Positions, found: Positions, fault: list[str]
    ) -> tuple[Positions, Ints, list[str]]:
        """Where files end, about how many rows that is, and faults."""
        read = np.where(since.major == found.major, since.minor, 0)
        unread = np.maximum(found.minor - read, 0)
        self._sample(streams, unread)
        waiting = np.ceil(unread / self._row_bytes).astype(np.int64)
        return found, waiting, fault

    def advance(
        self, streams: Sequence[str], start: Positions, latest: Positions, rows: Ints
    ) -> tuple[Positions, Ints]:
        """Bytes for so many rows, by the mean."""
        begin = np.where(start.major == latest.major, start.minor, 0)
        wanted = begin + np.maximum(rows * self._row_bytes, 1).astype(np.int64)
        end = np.minimum(wanted, latest.minor)
        counts = np.ceil((end - begin) / self._row_bytes).astype(np.int64)
        return Positions(latest.major, end), counts

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

    def _sample(self, streams: Sequence[str], unread: Ints) -> None:
        """Learn the mean length of a line from one file that grew; cheap, whatever their number."""
        grown = np.flatnonzero(unread)
        if len(grown) == 0:
            return
        self._sampled += 1
        name = streams[int(grown[self._sampled % len(grown)])]
        head = self._directory.head(name, SAMPLE_BYTES) or b""
        lines = head.count(b"\n")
        if lines:
            mean = (head.rfind(b"\n") + 1) / lines
            weight = max(0.2, 1 / self._sampled)
            self._row_bytes += weight * (mean - self._row_bytes)

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
