"""A channel: a directory of Arrow files and a log of what was published, read at own pace by many.

Layout: `channel.json` says what it is and its schema; `log/N.json` is the N-th published batch;
`data/` its files; `readers/NAME.json` how far a reader has come; `_staged/` what tasks write and
nobody sees yet. A batch becomes part of the channel by one atomic link of its log entry; rows are
numbered through, so an offset is one number. All of it is private to its owner.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.errors import InvalidInput
from penstock.model.arrivals import Arrivals
from penstock.spark.channels.entries import Chunk, Entry, entry_from
from penstock.spark.checkpoint.durable_files import write_atomically

FORMAT = "penstock-channel"
VERSION = 1
MOST_SEEN = 1_000  # entries taken in one by one before the log is listed anew


@dataclass(frozen=True)
class Piece:
    """Rows of one file, from `start` up to but without `end`."""

    path: str
    start: int
    end: int


class Channel:
    """The directory, opened; one object belongs to one thread."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.schema_json = _read_header(directory)
        self._entries: list[Entry] = []
        self._next = 0
        self._listed = 0

    @classmethod
    def create(cls, directory: Path, schema_json: str) -> "Channel":
        """A new channel, or the one that is there if its schema is the same."""
        header = directory / "channel.json"
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            foreign = not header.exists() and any(directory.iterdir())
        except OSError as error:
            raise InvalidInput(f"channel {directory} cannot be used: {error.strerror}.") from error
        if foreign and {path.name for path in directory.iterdir()} - {"log", "data", "readers"}:
            raise InvalidInput(f"channel {directory} holds other files; name an empty directory.")
        for name in ("log", "data", "readers"):
            (directory / name).mkdir(mode=0o700, exist_ok=True)
        if not header.exists():
            said = {"format": FORMAT, "version": VERSION, "schema": json.loads(schema_json)}
            write_atomically(header, said)
        channel = cls(directory)
        if json.loads(channel.schema_json) != json.loads(schema_json):
            raise InvalidInput(
                f"channel {directory} was made with another schema; name another directory, or "
                "make the rows as they were."
            )
        return channel

    @property
    def name(self) -> str:
        """The name of its directory."""
        return self.directory.name

    def refresh(self) -> None:
        """Take in what was published since the last look."""
        if not self._entries or len(self._entries) > 2 * self._listed + MOST_SEEN:
            # What others removed meanwhile is forgotten with the list.
            self._entries.clear()
            for number in self._numbers():
                self._take(number)
            self._listed = len(self._entries)
        while True:
            while self._take(self._next):
                pass
            # Whoever looks seldom finds entries gone that were published and read meanwhile.
            later = [number for number in self._numbers() if number > self._next]
            if not later:
                return
            self._next = later[0]

    def end_row(self) -> int:
        """Rows published so far."""
        self.refresh()
        return self._entries[-1].end_row if self._entries else 0

    def first_row(self) -> int:
        """The first row whose file is still there."""
        self.refresh()
        kept = [entry for entry in self._entries if self._is_kept(entry)]
        return kept[0].first_row if kept else self.end_row()

    def entries(self, start: int, end: int) -> list[Entry]:
        """The entries that hold the rows from `start` up to but without `end`."""
        self.refresh()
        found = [e for e in self._entries if e.end_row > start and e.first_row < end]
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
        return [entry for entry in self._entries if entry.sequence >= sequence]

    def pieces(self, start: int, end: int) -> list[Piece]:
        """The files that hold a range of rows."""
        found = []
        for entry in self.entries(start, end):
            row = entry.first_row
            for chunk in entry.chunks:
                first, last = max(start - row, 0), min(end - row, chunk.rows)
                if first < last:
                    found.append(Piece(str(self._file(chunk)), first, last))
                row += chunk.rows
        return found

    def publish(
        self,
        writer: str,
        batch: int,
        staged: Path,
        chunks: Sequence[Chunk],
        arrivals: Arrivals | None = None,
    ) -> bool:
        """Make a staged batch part of the channel; False if that batch of the writer already is.

        Batches of one writer have rising numbers, so the newest of each tells what was published.
        """
        with self._locked():
            self.refresh()
            if batch <= self._newest_batches().get(writer, -1):
                return False
            for chunk in chunks:
                source, target = staged / chunk.file, self._file(chunk)
                # After a crash between these moves and the entry, some are in place already.
                if not target.exists():
                    _sync(source)
                    source.rename(target)
            _sync(self.directory / "data")
            entry = Entry(
                self._next, writer, batch, self.end_row(), tuple(chunks), time.time(), arrivals
            )
            scratch = self.directory / "log" / f".{writer}.new"
            write_atomically(scratch, entry.as_json())
            # Unlike a rename, a link never replaces an entry that is there.
            os.link(scratch, self._log(entry.sequence))
            scratch.unlink()
            _sync(self.directory / "log")
        return True

    def register(self, reader: str) -> int:
        """Where a reader begins: at its first time with the oldest row that is kept.

        From then on nothing is removed before this reader has passed it.
        """
        file = self._reader(reader)
        with self._locked():
            if not file.exists():
                row = self.first_row()
                write_atomically(file, {"reader": reader, "first_row": row, "row": row})
        return int(_read(file)["first_row"])

    def positions(self) -> dict[str, int]:
        """How far each registered reader has come, with batches that are committed."""
        files = sorted((self.directory / "readers").glob("*.json"))
        return {file.stem: int(_read(file)["row"]) for file in files}

    def advance(self, reader: str, row: int) -> None:
        """A reader's batches up to this row are committed; removes what nobody needs any more."""
        file = self._reader(reader)
        told = _read(file)
        if row > int(told["row"]):
            write_atomically(file, {**told, "row": row})
        self._clean(min(self.positions().values()))

    def forget(self, reader: str) -> None:
        """Take a reader off the list: nothing is kept for it any more."""
        self._reader(reader).unlink(missing_ok=True)

    def _clean(self, passed_row: int) -> None:
        self.refresh()
        kept = {entry.sequence for entry in self._newest().values()}  # they know what was published
        kept.add(self._entries[-1].sequence if self._entries else -1)
        passed = [entry for entry in self._entries if entry.end_row <= passed_row]
        for entry in passed:
            for chunk in entry.chunks:
                self._file(chunk).unlink(missing_ok=True)
            if entry.sequence not in kept:
                self._log(entry.sequence).unlink(missing_ok=True)
                self._entries.remove(entry)

    def _newest(self) -> dict[str, Entry]:
        return {entry.writer: entry for entry in self._entries}

    def _newest_batches(self) -> dict[str, int]:
        return {writer: entry.batch for writer, entry in self._newest().items()}

    def _is_kept(self, entry: Entry) -> bool:
        return all(self._file(chunk).exists() for chunk in entry.chunks)

    def _numbers(self) -> list[int]:
        names = os.listdir(self.directory / "log")
        return sorted(int(name[:-5]) for name in names if name[:-5].isdigit())

    def _take(self, number: int) -> bool:
        """Read one entry of the log; False if there is none of that number."""
        file = self._log(number)
        try:
            text = file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return False
        try:
            entry = entry_from(text)
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(
                f"channel {self.directory}: log entry {file.name} is damaged ({error}); restore "
                "it, or begin with another channel."
            ) from error
        self._entries.append(entry)
        self._next = number + 1
        return True

    def _log(self, sequence: int) -> Path:
        return self.directory / "log" / f"{sequence:012d}.json"

    def _file(self, chunk: Chunk) -> Path:
        return self.directory / "data" / chunk.file

    def _reader(self, reader: str) -> Path:
        if not reader or "/" in reader or reader.startswith("."):
            raise InvalidInput(f"reader {reader!r} must be a name without '/' or leading dot.")
        return self.directory / "readers" / f"{reader}.json"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One writer at a time; the lock ends with its process, however that ends."""
        lock = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def _read_header(directory: Path) -> str:
    try:
        header = json.loads((directory / "channel.json").read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InvalidInput(
            f"{directory} is no channel: it has no channel.json; name one that a writer made."
        ) from error
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"{directory} is no channel: its channel.json is damaged; restore it, or begin with "
            "another directory."
        ) from error
    if not isinstance(header, dict) or header.get("format") != FORMAT or "schema" not in header:
        raise InvalidInput(f"{directory} is no channel: its channel.json is of something else.")
    if header.get("version") != VERSION:
        raise InvalidInput(
            f"channel {directory} has version {header.get('version')!r}; this Penstock reads "
            f"version {VERSION}."
        )
    return json.dumps(header["schema"])


def _read(file: Path) -> dict[str, Any]:
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
        int(told["row"]), int(told["first_row"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(
            f"{file} is damaged; restore it, or begin with another reader."
        ) from error
    return dict(told)


def _sync(path: Path) -> None:
    """A file, or the names in a directory, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
