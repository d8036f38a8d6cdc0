"""A channel: a directory of Arrow files and a log of what was published, read at own pace by many.

Layout: `channel.json` says what it is and its schema; `log/N.json` is the N-th published batch;
`data/` its files; `readers/NAME.json` how far a reader has come; `_staged/` what tasks write and
nobody sees yet. A batch becomes part of the channel by one atomic link of its log entry; rows are
numbered through, so an offset is one number. All of it is private to its owner.
"""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.errors import InvalidInput, Unavailable
from penstock.model.arrivals import Arrivals
from penstock.spark.channels.entries import Chunk, Entry, batch_of
from penstock.spark.channels.header import HEADER, read_schema, refuse_foreign, write_header
from penstock.spark.channels.published import PublishedLog
from penstock.spark.checkpoint.durable_files import (
    exclusive,
    make_directory,
    remove,
    remove_leftovers,
    rename,
    sync_directory,
    sync_file,
    write_atomically,
)
from penstock.spark.checkpoint.sealed import read_sealed


@dataclass(frozen=True)
class Piece:
    """Rows of one file, from `start` up to but without `end`."""

    path: str
    start: int
    end: int
    crc32: int | None = None  # of the whole file


class Channel:
    """The directory, opened; one object belongs to one thread."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.schema_json = read_schema(directory)
        self._log = PublishedLog(directory / "log")

    @classmethod
    def create(cls, directory: Path, schema_json: str) -> "Channel":
        """A new channel, or the one that is there if its schema is the same."""
        try:
            make_directory(directory)
            if not (directory / HEADER).exists():
                refuse_foreign(directory)
            with exclusive(directory / "lock"):
                remove_leftovers(directory)
                write_header(directory, schema_json)
        except OSError as error:
            raise InvalidInput(f"channel {directory} cannot be used: {error.strerror}.") from error
        channel = cls(directory)
        if json.loads(channel.schema_json) != json.loads(schema_json):
            raise InvalidInput(
                f"channel {directory} was created with another schema; name another directory, or "
                "restore the earlier schema."
            )
        return channel

    @property
    def name(self) -> str:
        """The name of its directory."""
        return self.directory.name

    def refresh(self) -> None:
        """Take in what was published since the last look."""
        self._log.refresh()

    def end_row(self) -> int:
        """Rows published so far."""
        self.refresh()
        return self._log.entries[-1].end_row if self._log.entries else 0

    def first_row(self) -> int:
        """The first row whose file is still there."""
        self.refresh()
        kept = [entry for entry in self._log.entries if self._is_kept(entry)]
        return kept[0].first_row if kept else self.end_row()

    def entries(self, start: int, end: int) -> list[Entry]:
        """The entries that hold the rows from `start` up to but without `end`."""
        self.refresh()
        found = [e for e in self._log.entries if e.end_row > start and e.first_row < end]
        reached = start
        for entry in found:
            if entry.first_row > reached:
                break
            reached = entry.end_row
        if reached < end:
            raise InvalidInput(
                f"channel {self.directory}: rows {reached} to {end} are not in its log; they were "
                "removed when all readers had passed them, or the log is damaged."
            )
        return found

    def since(self, sequence: int) -> list[Entry]:
        """Entries of this number and later ones."""
        self.refresh()
        return [entry for entry in self._log.entries if entry.sequence >= sequence]

    def newest(self, count: int) -> list[Entry]:
        """So many of the entries that were published last, oldest first."""
        self.refresh()
        return self._log.entries[-count:]

    def pieces(self, start: int, end: int) -> list[Piece]:
        """The files that hold a range of rows."""
        found = []
        for entry in self.entries(start, end):
            row = entry.first_row
            for chunk in entry.chunks:
                first, last = max(start - row, 0), min(end - row, chunk.rows)
                if first < last:
                    found.append(Piece(str(self._file(chunk)), first, last, chunk.crc32))
                row += chunk.rows
        return found

    def publish(
        self,
        writer: str,
        batch: int,
        staged: Path,
        chunks: Sequence[Chunk],
        arrivals: Arrivals | None = None,
        offsets: str | None = None,
    ) -> bool:
        """Make a staged batch part of the channel; False if that batch of the writer already is.

        Batches of one writer have rising numbers, so the newest of each says what was published.
        `offsets` is a digest of what the batch was read from: one of the same number that was read
        from something else is not the same batch, and is refused.
        """
        with exclusive(self.directory / "lock"):
            remove_leftovers(self.directory / "log")
            self.refresh()
            newest = self._log.newest().get(writer)
            if newest is not None and batch <= newest.batch:
                self._refuse_other(newest, batch, offsets)
                sync_directory(self.directory / "log")  # whoever added it may have failed to
                return False
            for chunk in chunks:
                self._take_in(staged, chunk, batch)
            sync_directory(self.directory / "data")
            self._log.add(
                Entry(
                    self._log.next_number, writer, batch, self.end_row(), tuple(chunks),
                    time.time(), arrivals, offsets,
                )
            )  # fmt: skip
        return True

    def drop_unpublished(self, writer: str) -> None:
        """Remove files of attempts that ended before their batch was published.

        Only for a writer that names files by `chunk_name` and has no attempt under way.
        """
        with exclusive(self.directory / "lock"):
            self.refresh()
            newest = self._log.newest().get(writer)
            last = -1 if newest is None else newest.batch
            for file in sorted((self.directory / "data").iterdir()):
                batch = batch_of(writer, file.name)
                if batch is not None and batch > last:
                    remove(file)

    def _take_in(self, staged: Path, chunk: Chunk, batch: int) -> None:
        """Move a staged file to the others; after a crash some of a batch are there already."""
        source, target = staged / chunk.file, self._file(chunk)
        if target.exists():
            return
        if not source.exists():
            raise InvalidInput(
                f"channel {self.directory}: file {chunk.file} of batch {batch} is neither staged "
                f"at {staged} nor in the channel; restore it there, nothing was published."
            )
        sync_file(source)
        rename(source, target)

    def _refuse_other(self, newest: Entry, batch: int, offsets: str | None) -> None:
        """Refuse a batch of a number that was published before with other rows."""
        if offsets is None or newest.offsets is None:
            return
        same = [e for e in self._log.entries if (e.writer, e.batch) == (newest.writer, batch)]
        if not same or same[-1].offsets not in (None, offsets):
            raise InvalidInput(
                f"channel {self.directory}: batch {batch} of {newest.writer} was published before "
                "and was then read from other offsets; the checkpoint is older than the channel or "
                "was restored in part, so restore both from the same time, or start with another "
                "checkpoint and channel."
            )

    def register(self, reader: str) -> int:
        """Where a reader begins: at its first time with the oldest row that is kept.

        From then on nothing is removed before this reader has passed it.
        """
        file = self._reader(reader)
        with exclusive(self.directory / "lock"):
            if file.exists():
                sync_directory(file.parent)  # whoever wrote it may have failed to
            else:
                row = self.first_row()
                write_atomically(file, {"reader": reader, "first_row": row, "row": row})
        return int(_read(file)["first_row"])

    @contextmanager
    def held(self, reader: str) -> Iterator[None]:
        """Keep other runs from reading under this name, whose files would be removed for both."""
        try:
            with exclusive(self._reader(reader).with_suffix(".lock"), wait=False):
                yield
        except BlockingIOError as error:
            raise Unavailable(
                f"reader {reader!r} of channel {self.directory} is in use by another run; give it "
                "another name, or end that run."
            ) from error

    def positions(self) -> dict[str, int]:
        """How far each registered reader has come, with batches that are committed."""
        files = sorted((self.directory / "readers").glob("*.json"))
        return {file.stem: int(_read(file)["row"]) for file in files}

    def advance(self, reader: str, row: int) -> None:
        """A reader's batches up to this row are committed; removes what nobody needs any more."""
        file = self._reader(reader)
        with exclusive(self.directory / "lock"):
            position = _read(file)
            if row > int(position["row"]):
                write_atomically(file, {**position, "row": row})
            self._clean(min(self.positions().values()))

    def forget(self, reader: str) -> None:
        """Take a reader off the list: nothing is kept for it any more."""
        with exclusive(self.directory / "lock"):
            remove(self._reader(reader))

    def _clean(self, passed_row: int) -> None:
        self.refresh()
        kept = {
            entry.sequence for entry in self._log.newest().values()
        }  # they know what was published
        kept.add(self._log.entries[-1].sequence if self._log.entries else -1)
        passed = [entry for entry in self._log.entries if entry.end_row <= passed_row]
        for entry in passed:
            for chunk in entry.chunks:
                remove(self._file(chunk))
            if entry.sequence not in kept:
                self._log.drop(entry)

    def _is_kept(self, entry: Entry) -> bool:
        return all(self._file(chunk).exists() for chunk in entry.chunks)

    def _file(self, chunk: Chunk) -> Path:
        return self.directory / "data" / chunk.file

    def _reader(self, reader: str) -> Path:
        if not reader or "/" in reader or reader.startswith("."):
            raise InvalidInput(f"reader {reader!r} must be a name without '/' or leading dot.")
        return self.directory / "readers" / f"{reader}.json"


def _read(file: Path) -> dict[str, Any]:
    try:
        position = read_sealed(file)
        int(position["row"]), int(position["first_row"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(
            f"{file} is damaged ({error}); restore it, or start with another reader."
        ) from error
    return position
