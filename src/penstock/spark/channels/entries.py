"""What a channel's log holds: one entry for each batch that a writer published."""

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from penstock.model.arrivals import Arrivals


@dataclass(frozen=True)
class Chunk:
    """One Arrow file of a batch."""

    file: str
    rows: int
    crc32: int | None = None  # of the file; None if its writer did not say

    def as_json(self) -> list[Any]:
        """The form of the log and of commit records."""
        return [self.file, self.rows, self.crc32]


def chunk_name(writer: str, batch: int, place: int) -> str:
    """A file's name of a writer that keeps no record of what it is about to publish."""
    return f"{_stem(writer)}{batch}-{place}.arrow"


def batch_of(writer: str, file: str) -> int | None:
    """The batch of a file that such a writer named; None for files of others."""
    stem = _stem(writer)
    batch = file.removeprefix(stem).partition("-")[0]
    return int(batch) if file.startswith(stem) and batch.isdigit() else None


def _stem(writer: str) -> str:
    """Of any name there may be, one that a file can have."""
    return f"part-{hashlib.sha256(writer.encode()).hexdigest()[:16]}-"


def chunk_from(document: Any) -> Chunk:
    """What `Chunk.as_json` wrote; a file's name is one within the channel."""
    file, rows, *crc32 = document
    return Chunk(_plain_name(file), int(rows), *crc32)


@dataclass(frozen=True)
class Entry:
    """A published batch: its rows are those of the channel from `first_row` on.

    `arrivals` says when the rows of the outer sources behind it arrived; None if nobody knows.
    `offsets` is a digest of what the batch was read from; None if its writer did not say.
    """

    sequence: int
    writer: str
    batch: int
    first_row: int
    chunks: tuple[Chunk, ...]
    at_s: float
    arrivals: Arrivals | None = None
    offsets: str | None = None

    @property
    def rows(self) -> int:
        """Rows of the batch."""
        return sum(chunk.rows for chunk in self.chunks)

    @property
    def end_row(self) -> int:
        """The first row after it."""
        return self.first_row + self.rows

    def as_json(self) -> dict[str, Any]:
        """The form of the log."""
        return {
            "sequence": self.sequence,
            "writer": self.writer,
            "batch": self.batch,
            "first_row": self.first_row,
            "chunks": [chunk.as_json() for chunk in self.chunks],
            "at_s": self.at_s,
            "arrivals": None if self.arrivals is None else arrivals_json(self.arrivals),
            "offsets": self.offsets,
        }


def entry_from(document: dict[str, Any]) -> Entry:
    """The entry of a log file; ValueError or KeyError or TypeError where it is damaged."""
    arrivals = document["arrivals"]
    return Entry(
        sequence=int(document["sequence"]),
        writer=str(document["writer"]),
        batch=int(document["batch"]),
        first_row=int(document["first_row"]),
        chunks=tuple(map(chunk_from, document["chunks"])),
        at_s=float(document["at_s"]),
        arrivals=None if arrivals is None else arrivals_from(arrivals),
        offsets=document.get("offsets"),
    )


def _plain_name(file: str) -> str:
    """A name within the channel: a log must not lead a reader, or its clean-up, elsewhere."""
    if not isinstance(file, str) or "/" in file or file.startswith("."):
        raise ValueError(f"chunk {file!r} is not a plain file name")
    return file


def arrivals_json(arrivals: Arrivals) -> dict[str, float]:
    """Count, mean, earliest and latest arrival."""
    return {
        "count": arrivals.rows,
        "mean_s": arrivals.mean_s,
        "min_s": arrivals.first_s,
        "max_s": arrivals.last_s,
    }


def arrivals_from(document: dict[str, Any]) -> Arrivals:
    """What `arrivals_json` wrote."""
    return Arrivals(
        rows=float(document["count"]),
        first_s=float(document["min_s"]),
        last_s=float(document["max_s"]),
        middle_s=float(document["mean_s"]),
    )


def merged(parts: Iterable[Arrivals]) -> Arrivals | None:
    """One summary of several; None when they hold no row."""
    given = [part for part in parts if part.rows > 0]
    rows = math.fsum(part.rows for part in given)
    if not given:
        return None
    mean_s = math.fsum(part.rows * part.mean_s for part in given) / rows
    return Arrivals(
        rows, min(part.first_s for part in given), max(part.last_s for part in given), mean_s
    )


def share(entry: Entry, start: int, end: int) -> Arrivals | None:
    """Arrivals behind a part of an entry's rows: a share, as nobody knows which of its arrivals."""
    rows = min(end, entry.end_row) - max(start, entry.first_row)
    if entry.arrivals is None or rows <= 0:
        return None
    count = entry.arrivals.rows * rows / entry.rows
    return Arrivals(count, entry.arrivals.first_s, entry.arrivals.last_s, entry.arrivals.mean_s)
