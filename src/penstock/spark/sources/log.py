"""The admission log: which ranges of which streams each batch took; durable before Spark knows it.

Spark's offset is only a sequence number into this log. An entry is on the disk before its number
is returned, so whatever Spark remembers can be read again. An entry that Spark does not remember
(a crash in between) was never read by anyone and is cut off when the log is opened.

Segments are files named after the sequence number they begin at. Each begins with a snapshot of all
streams; entries follow, of the streams that moved only. A frame is length, CRC and data; a torn
tail is one that does not add up. Segments before the last committed batch are removed.
"""

import os
import struct
import time
import zlib
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path

from penstock.errors import PenstockError, Unavailable
from penstock.model.observation import Ints
from penstock.spark.checkpoint.durable_files import (
    append,
    cut,
    locked,
    make_directory,
    opened,
    remove,
    remove_leftovers,
    replacing,
    sync_directory,
)
from penstock.spark.sources.entry import Batch, Snapshot, decode_entry, encode

FRAME = struct.Struct(">4sII")
MAGIC = b"PNS1"
MOST_ENTRIES, MOST_BYTES = 256, 16 << 20  # of a segment
LOCK_LIMIT_S = 20.0


class DamagedLog(PenstockError):
    """The log does not hold what Spark's checkpoint refers to."""


class AdmissionLog:
    """One directory, one writer at a time."""

    def __init__(self, directory: Path, limit_s: float | None = None) -> None:
        """Whoever has it is waited for, as a runner that is just ending has."""
        self.directory = directory
        make_directory(directory)
        self._lock = _locked(directory / "lock", LOCK_LIMIT_S if limit_s is None else limit_s)
        self._file: int | None = None
        self._segment = directory
        self._entries = self._bytes = 0
        self._torn = False  # whether an entry was begun behind the last whole one
        self.recent: dict[int, Batch] = {}  # entries that are not committed, as far as read

    def forget_if_empty(self) -> bool:
        """Whether it has never had an entry, so that no offset names it; it is new again then."""
        bases = self._bases()
        if bases and (bases != [0] or not _only_snapshot(self._path(0))):
            return False
        for base in bases:  # of which streams there were then
            remove(self._path(base))
        return True

    def open(self, first: Snapshot, seq: int) -> list[Batch | Snapshot]:
        """Cut the log off after `seq` and return what leads there; `first` begins a new log."""
        remove_leftovers(self.directory)
        bases = self._bases()
        if not bases:
            if seq > 0:
                raise DamagedLog(f"{self.directory} holds no entry {seq}, which Spark refers to.")
            sync_directory(self.directory.parent)  # its own name, whoever made it
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
        # Nothing is changed before it is certain that the wanted entry is there.
        segment = self._path(base)
        entries, length = _frames(segment, seq)
        if not entries or entries[-1].seq != seq:
            raise DamagedLog(
                f"{segment} holds no entry {seq}, which Spark refers to: it is damaged, or from "
                "another time than the checkpoint; restore both from the same time."
            )
        for later in (other for other in bases if other > base):
            remove(self._path(later))
        # Before anything is added: one that came back after a power cut would be read instead.
        sync_directory(self.directory)
        self._let_go()
        self._file, self._segment = opened(segment), segment
        cut(self._file, segment, length)
        self._entries, self._bytes, self._torn = len(entries), length, False
        self.recent = {entry.seq: entry for entry in entries if isinstance(entry, Batch)}
        return entries

    def append(self, batch: Batch) -> None:
        """Add an entry; it is on the disk when this returns."""
        if self._file is None:
            raise Unavailable(
                f"{self.directory} could not be continued after a failure; restart the "
                "query (nothing that was admitted is lost)."
            )
        frame = _frame(encode(batch))
        if self._torn:
            cut(self._file, self._segment, self._bytes)
        self._torn = True
        append(self._file, self._segment, frame)
        self._torn = False
        self._entries += 1
        self._bytes += len(frame)
        self.recent[batch.seq] = batch

    @property
    def full(self) -> bool:
        """Whether a new segment is due."""
        return self._entries > 1 and (self._entries >= MOST_ENTRIES or self._bytes >= MOST_BYTES)

    def roll(self, snapshot: Snapshot) -> None:
        """Begin a new segment with the state after the last entry.

        If that fails the log must be opened again: an entry added to the old segment would not be
        found behind a new one that may be there or not.
        """
        self._let_go()
        self._begin(snapshot)

    def renumber(self, number: Ints) -> None:
        """Streams have other numbers from the next segment on; so have they in what is held."""
        self.recent = {
            seq: replace(batch, stream=number[batch.stream]) for seq, batch in self.recent.items()
        }

    def committed(self, seq: int) -> None:
        """Nothing up to `seq` will be read again."""
        for known in [known for known in self.recent if known <= seq]:
            del self.recent[known]
        bases = self._bases()
        for base, following in pairwise(bases):
            if following <= seq:
                remove(self._path(base))

    def close(self) -> None:
        """Let another process have it."""
        self._let_go()
        os.close(self._lock)

    def _let_go(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _begin(self, snapshot: Snapshot) -> None:
        frame, segment = _frame(encode(snapshot)), self._path(snapshot.seq)
        with replacing(segment) as stream:
            stream.write(frame)
        self._file, self._segment = opened(segment), segment
        self._entries, self._bytes, self._torn = 1, len(frame), False

    def _bases(self) -> list[int]:
        return sorted(int(path.stem) for path in self.directory.glob("*.segment"))

    def _path(self, base: int) -> Path:
        return self.directory / f"{base:016d}.segment"


def new_log(logs: Path) -> AdmissionLog:
    """One that no offset names and no other reader has: a source read twice in a query has two.

    It may be of a start before this one, which ended before there was anything to read.
    """
    make_directory(logs)
    for number in count():
        try:
            log = AdmissionLog(logs / str(number), limit_s=0.0)
        except Unavailable:
            continue
        try:
            if log.forget_if_empty():
                return log
        except BaseException:
            log.close()
            raise
        log.close()
    raise AssertionError("numbers do not end")


def _only_snapshot(segment: Path) -> bool:
    """Whether nothing follows the first frame, not even part of an entry."""
    with segment.open("rb") as stream:
        head = stream.read(FRAME.size)
    length = FRAME.unpack(head)[1] if len(head) == FRAME.size else 0
    return segment.stat().st_size == FRAME.size + length


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


def _locked(path: Path, limit_s: float) -> int:
    """Hold the log; a runner that is just ending is waited for."""
    deadline = time.monotonic() + limit_s
    while True:
        try:
            return locked(path, wait=False)
        except BlockingIOError as error:
            if time.monotonic() >= deadline:
                raise Unavailable(f"{path.parent} is in use by another query.") from error
            time.sleep(0.05)
