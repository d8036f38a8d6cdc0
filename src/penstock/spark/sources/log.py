"""The admission log: which ranges of which streams each batch took; durable before Spark knows it.

Spark's offset is only a sequence number into this log. An entry is on the disk before its number
is returned, so whatever Spark remembers can be read again. An entry that Spark does not remember
(a crash in between) was never read by anyone and is cut off when the log is opened.

Segments are files named after the sequence number they begin at. Each begins with a snapshot of all
streams; entries follow, of the streams that moved only. A frame is length, CRC and data; a torn
tail is one that does not add up. Segments before the last committed batch are removed.
"""

import fcntl
import os
import struct
import time
import zlib
from itertools import pairwise
from pathlib import Path

from penstock.errors import PenstockError, Unavailable
from penstock.spark.sources.entry import Batch, Snapshot, decode_entry, encode

FRAME = struct.Struct(">4sII")
MAGIC = b"PNS1"
MOST_ENTRIES, MOST_BYTES = 256, 16 << 20  # of a segment
LOCK_LIMIT_S = 20.0


class DamagedLog(PenstockError):
    """The log does not hold what Spark's checkpoint refers to."""


class AdmissionLog:
    """One directory, one writer at a time."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = _locked(directory / "lock")
        self._file: int | None = None
        self._entries = self._bytes = 0
        self.recent: dict[int, Batch] = {}  # entries that are not committed, as far as read

    def open(self, first: Snapshot, seq: int) -> list[Batch | Snapshot]:
        """Cut the log off after `seq` and return what leads there; `first` begins a new log."""
        bases = self._bases()
        if not bases:
            if seq > 0:
                raise DamagedLog(f"{self.directory} holds no entry {seq}, which Spark refers to.")
            self._begin(first)
            return [first]
        # A segment that begins at `seq` has its state but not its ranges, which may be wanted again
        # as long as the one before is there.
        base = max((base for base in bases if base < seq), default=seq if seq in bases else None)
        if base is None:
            raise DamagedLog(
                f"{self.directory} begins after entry {seq}, which Spark refers to; the checkpoint "
                "is older than what was committed."
            )
        for later in (other for other in bases if other > base):
            self._path(later).unlink()
        entries, length = _frames(self._path(base), seq)
        if not entries or entries[-1].seq != seq:
            raise DamagedLog(f"{self.directory} holds no entry {seq}, which Spark refers to.")
        self._file = os.open(self._path(base), os.O_RDWR)
        os.ftruncate(self._file, length)
        os.lseek(self._file, 0, os.SEEK_END)
        os.fsync(self._file)
        self._entries, self._bytes = len(entries), length
        self.recent = {entry.seq: entry for entry in entries if isinstance(entry, Batch)}
        return entries

    def append(self, batch: Batch) -> None:
        """Add an entry; it is on the disk when this returns."""
        assert self._file is not None, "the log is not open"
        frame = _frame(encode(batch))
        _write(self._file, frame)
        os.fdatasync(self._file)
        self._entries += 1
        self._bytes += len(frame)
        self.recent[batch.seq] = batch

    @property
    def full(self) -> bool:
        """Whether a new segment is due."""
        return self._entries >= MOST_ENTRIES or self._bytes >= MOST_BYTES

    def roll(self, snapshot: Snapshot) -> None:
        """Begin a new segment with the state after the last entry."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        self._begin(snapshot)

    def committed(self, seq: int) -> None:
        """Nothing up to `seq` will be read again."""
        for known in [known for known in self.recent if known <= seq]:
            del self.recent[known]
        bases = self._bases()
        for base, following in pairwise(bases):
            if following <= seq:
                self._path(base).unlink(missing_ok=True)

    def close(self) -> None:
        """Let another process have it."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        os.close(self._lock)

    def _begin(self, snapshot: Snapshot) -> None:
        frame = _frame(encode(snapshot))
        scratch = self.directory / "segment.new"
        self._file = os.open(scratch, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        _write(self._file, frame)
        os.fsync(self._file)
        scratch.replace(self._path(snapshot.seq))
        _sync_directory(self.directory)
        self._entries, self._bytes = 1, len(frame)

    def _bases(self) -> list[int]:
        return sorted(int(path.stem) for path in self.directory.glob("*.segment"))

    def _path(self, base: int) -> Path:
        return self.directory / f"{base:016d}.segment"


def _frames(path: Path, until: int) -> tuple[list[Batch | Snapshot], int]:
    """Whole frames up to an entry, and where they end."""
    data = path.read_bytes()
    entries: list[Batch | Snapshot] = []
    at = 0
    while at + FRAME.size <= len(data):
        magic, length, crc = FRAME.unpack_from(data, at)
        body = data[at + FRAME.size : at + FRAME.size + length]
        if magic != MAGIC or len(body) < length or zlib.crc32(body) != crc:
            break
        entry = decode_entry(body)
        if entry.seq > until:
            break
        entries.append(entry)
        at += FRAME.size + length
    return entries, at


def _frame(body: bytes) -> bytes:
    return FRAME.pack(MAGIC, len(body), zlib.crc32(body)) + body


def _write(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _sync_directory(directory: Path) -> None:
    folder = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _locked(path: Path) -> int:
    """Hold the log; a runner that is just ending is waited for."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + LOCK_LIMIT_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                os.close(lock)
                raise Unavailable(f"{path.parent} is in use by another query.") from error
            time.sleep(0.05)
