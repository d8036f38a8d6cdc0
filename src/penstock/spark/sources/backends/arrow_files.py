"""Files that are Arrow IPC streams and grow by record batches: cut at messages, counted exactly."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.model.observation import Ints
from penstock.spark.sources.backends.backend import Chunk, Malformed, Positions, Ranges
from penstock.spark.sources.backends.decoding import MALFORMED
from penstock.spark.sources.backends.directory import SLACK, Directory

CONTINUES = b"\xff\xff\xff\xff"  # every message begins with it
END = CONTINUES + b"\0\0\0\0"


@dataclass
class _Messages:
    """Record batches of a file beyond what was read: where each ends, and rows up to there."""

    inode: int
    ends: list[int]
    rows: list[int]
    schema: pa.Schema | None = None


class ArrowFiles:
    """How far files reach in whole record batches, and their rows."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._known: dict[str, _Messages] = {}

    def reach(
        self, streams: Sequence[str], since: Positions, found: Positions, fault: list[str]
    ) -> tuple[Positions, Ints, list[str]]:
        """Where whole record batches end, how many rows they hold, and faults."""
        end, waiting = found.minor.copy(), np.zeros(len(streams), dtype=np.int64)
        same = since.major == found.major
        read = np.where(same, since.minor, 0)
        if len(self._known) > 2 * len(streams) + SLACK:  # of streams that left
            self._known = {name: self._known[name] for name in streams if name in self._known}
        for row in np.flatnonzero((found.major != 0) & (found.minor > read)).tolist():
            if fault[row]:
                continue
            messages = self._messages(streams[row], int(found.major[row]), int(read[row]))
            fault[row] = self._walk(streams[row], messages, int(found.minor[row]))
            end[row] = messages.ends[-1]
            waiting[row] = messages.rows[-1] - messages.rows[0]
        idle = waiting == 0
        end[idle] = since.minor[idle]
        return Positions(np.where(idle, since.major, found.major), end), waiting, fault

    def advance(
        self, streams: Sequence[str], start: Positions, latest: Positions, rows: Ints
    ) -> tuple[Positions, Ints]:
        """Whole record batches of at most so many rows, and at least one."""
        end, counts = latest.minor.copy(), rows.copy()
        for row, name in enumerate(streams):
            messages = self._known[name]
            place = int(np.searchsorted(messages.rows, messages.rows[0] + rows[row], "right")) - 1
            last = messages.ends.index(int(latest.minor[row]))
            place = min(max(place, 1), last)
            end[row] = messages.ends[place]
            counts[row] = messages.rows[place] - messages.rows[0]
        return Positions(latest.major, end), counts

    def read(self, ranges: Ranges, schema: pa.Schema) -> Iterator[Chunk]:
        """One chunk for each record batch, without a copy where types agree."""
        for number, name in enumerate(ranges.streams):
            inode, end = int(ranges.end.major[number]), int(ranges.end.minor[number])
            same = int(ranges.start.major[number]) == inode
            start = int(ranges.start.minor[number]) if same else 0
            path = self._directory.path_of(name, inode)
            if path is None:
                reason = f"the file vanished after bytes {start} to {end} had been admitted"
                yield _lost(name, start, reason, b"", schema)
                continue
            with pa.memory_map(str(path)) as file:
                given = pa.ipc.read_schema(pa.ipc.read_message(file))
                file.seek(max(start, file.tell()))
                while file.tell() < end:
                    at = file.tell()
                    message = pa.ipc.read_message(file)
                    if message.type != "record batch":
                        continue
                    try:
                        rows = _fitted(pa.ipc.read_record_batch(message, given), schema)
                    except (KeyError, *MALFORMED) as error:
                        raw = message.serialize().to_pybytes()
                        reason = str(error).strip().splitlines()[0]
                        yield _lost(name, at, reason, raw, schema)
                        continue
                    count = np.array([rows.num_rows], dtype=np.int64)
                    yield Chunk(rows, np.array([number], dtype=np.int64), count)

    def _messages(self, name: str, inode: int, read: int) -> _Messages:
        """What is known beyond `read`, what lies before it forgotten."""
        known = self._known.get(name)
        if known is None or known.inode != inode or read not in known.ends:
            known = _Messages(inode, [read], [0])
            self._known[name] = known
        place = known.ends.index(read)
        del known.ends[:place], known.rows[:place]
        return known

    def _walk(self, name: str, known: _Messages, size: int) -> str:
        """Go on to the last whole message; returns a fault."""
        path = self._directory.path_of(name, known.inode)
        if path is None or known.ends[-1] >= size:
            return ""
        with pa.memory_map(str(path)) as file:
            try:
                if known.schema is None:
                    known.schema = pa.ipc.read_schema(pa.ipc.read_message(file))
                    known.ends[-1] = max(known.ends[-1], file.tell())
                while known.ends[-1] < size:
                    at = known.ends[-1]
                    file.seek(at)
                    begins = file.read(min(8, size - at))
                    if begins == END or len(begins) < 8:
                        return ""
                    if begins[:4] != CONTINUES:
                        return f"byte {at} does not begin an Arrow message"
                    file.seek(at)
                    message = pa.ipc.read_message(file)
                    if message.type == "dictionary":
                        return "it has dictionary-encoded columns, which cannot be cut"
                    rows = pa.ipc.read_record_batch(message, known.schema).num_rows
                    known.ends.append(file.tell())
                    known.rows.append(known.rows[-1] + rows)
            except (pa.ArrowException, EOFError, OSError):
                return ""  # the last message is still being written
        return ""


def _fitted(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    rows.validate(full=True)  # Spark believes what a batch says: a wrong offset would end its JVM
    if rows.schema.equals(schema):
        return rows
    columns = [rows.column(field.name).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _lost(name: str, at: int, reason: str, raw: bytes, schema: pa.Schema) -> Chunk:
    none = np.empty(0, dtype=np.int64)
    empty = pa.RecordBatch.from_pylist([], schema=schema)
    return Chunk(empty, none, none, [Malformed(name, str(at), reason, raw)])
