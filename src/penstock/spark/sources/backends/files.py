"""A directory of growing files: every file is a stream, tailed.

Positions are (inode, byte). Lines (JSON, CSV) belong to the range that holds their line break, so
the runner never has to open a file to find where a record ends; a task looks back to where its
first record begins. Arrow files are cut at their messages. Counts of lines are estimates by the
mean length of those seen.

A file that is renamed and replaced (rotation) is read to its end under its new name in the same
directory, and then the file that replaced it. One that is cut off, rewritten from its start or gone
with bytes unread is suspended; see `docs/source.md` for what makes it sound again.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import InvalidInput, Unavailable
from penstock.model.observation import Ints
from penstock.spark.sources.backends.arrow_files import ArrowFiles
from penstock.spark.sources.backends.backend import (
    Advance,
    Backend,
    Chunk,
    Discovered,
    Latest,
    Positions,
    Ranges,
)
from penstock.spark.sources.backends.directory import (
    SLACK,
    Directory,
    Fingerprints,
    fits,
    nothing_in,
)
from penstock.spark.sources.backends.line_files import LineFiles

FORMATS = ("json", "csv", "arrow")


class FilesBackend(Backend):
    """Options: `directory`, `format`, `pattern`, and `header` when CSV files begin with one."""

    def __init__(self, directory: Path, form: str, pattern: str, header: bool = False) -> None:
        self._directory = Directory(directory)
        self._pattern = pattern
        self._layout: LineFiles | ArrowFiles = (
            ArrowFiles(self._directory)
            if form == "arrow"
            else LineFiles(self._directory, form, header)
        )
        self._fingerprints = Fingerprints(directory)
        self._seen: dict[str, tuple[int, int]] = {}  # inode and size at the last look
        self._suspect: set[str] = set()  # shrunk or rewritten
        self._listed: tuple[int | None, Sequence[Discovered]] | None = None

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> "FilesBackend":
        """The directory need not be there yet."""
        form = options.get("format", "json")
        if form not in FORMATS:
            raise InvalidInput(f"format is {form!r}; allowed: {', '.join(FORMATS)}.")
        header = bool(options.get("header", False))
        return cls(Path(options["directory"]), form, options.get("pattern", "*"), header)

    def discover(self) -> Sequence[Discovered]:
        """Files whose names fit the pattern; hidden ones are still being made."""
        stamp = self._directory.stamp()
        if self._listed is not None and stamp is not None and stamp == self._listed[0]:
            return self._listed[1]
        names = {name for name in self._directory.names() if fits(name, self._pattern)}
        found = [Discovered(name) for name in sorted(names) if not _is_rotated(name, names)]
        self._listed = (stamp, found)
        return found

    def nothing_there(self) -> str | None:
        """Whether the folder is there, and any file that fits."""
        return nothing_in(self._directory.path, self._pattern)

    def first(self, streams: Sequence[str]) -> Positions:
        """The start of the file that has the name now; (0, 0) where there is none yet."""
        for name in streams:  # whatever it was before, it begins now
            self._fingerprints.forget(name)
            self._suspect.discard(name)
        found = [self._directory.stat(name) for name in streams]
        inodes = [0 if f is None else f[0] for f in found]
        return Positions(np.array(inodes, dtype=np.int64), np.zeros(len(streams), dtype=np.int64))

    def latest(self, streams: Sequence[str], since: Positions, whole: bool = False) -> Latest:
        """Sizes, and what has happened to files since they were last looked at."""
        count = len(streams)
        inode, size = since.major.copy(), np.zeros(count, dtype=np.int64)
        fault = [""] * count
        self._directory.forget()
        self._forget_departed(streams)
        stat, known, seen = self._directory.stat, self._fingerprints, self._seen
        rows = zip(streams, since.major.tolist(), since.minor.tolist(), strict=True)
        for row, (name, major, minor) in enumerate(rows):
            found = stat(name)
            if found is not None and found[0] == major and found[1] >= minor:
                grown = seen.get(name) != found
                if grown or name in self._suspect or name not in known:
                    fault[row] = self._content_fault(name, major, minor)
                seen[name] = found
                size[row] = found[1]
            else:
                inode[row], size[row], fault[row] = self._changed(name, major, minor, found)
        end, waiting, wrong = self._layout.reach(streams, since, Positions(inode, size), fault)
        return Latest.of(end, waiting, wrong)

    def advance(
        self, streams: Sequence[str], start: Positions, latest: Positions, rows: Ints
    ) -> Advance:
        end, counts = self._layout.advance(streams, start, latest, rows)
        return Advance.of(end, counts)

    def fingerprints(self, streams: Sequence[str], upto: Positions) -> Ints:
        """Checksums of the last bytes that are admitted."""
        rows = zip(streams, upto.major.tolist(), upto.minor.tolist(), strict=True)
        found = [self._directory.checksum(name, inode, end) for name, inode, end in rows]
        return np.array(found, dtype=np.int64)

    def recall(self, streams: Sequence[str], upto: Positions, fingerprints: Ints) -> None:
        """Compared when a file is first looked at."""
        columns = (upto.major.tolist(), upto.minor.tolist(), fingerprints.tolist())
        for name, inode, end, checksum in zip(streams, *columns, strict=True):
            self._fingerprints.recall(name, inode, end, checksum)

    def read(self, ranges: Ranges, schema: pa.Schema) -> Iterator[Chunk]:
        self._directory.forget()
        return self._layout.read(ranges, schema)

    def _changed(
        self, name: str, major: int, minor: int, found: tuple[int, int] | None
    ) -> tuple[int, int, str]:
        """Inode, size and fault of a file that is not simply as long as before or longer."""
        if major == 0:  # it was declared before it was there
            return (*found, "") if found is not None else (0, 0, "")
        if found is not None and found[0] == major:
            self._suspect.add(name)
            return major, minor, f"it shrank to {found[1]} bytes, of which {minor} had been read"
        elsewhere = self._size_elsewhere(name, major, minor)
        if elsewhere is not None:
            if elsewhere > minor or found is None:
                return major, elsewhere, ""
            self._fingerprints.forget(name)
            return (*found, "") if found is not None else (major, minor, "")
        known, length = self._seen.get(name, (0, 0))
        if found is None:
            return major, minor, "it vanished"
        if known == major and length == minor:
            self._fingerprints.forget(name)
            return (*found, "")
        unread = f"{length - minor} bytes unread" if known == major else "an unknown rest unread"
        return major, minor, f"it was replaced by another file with {unread}"

    def _content_fault(self, name: str, inode: int, read: int) -> str:
        """Whether a file with the inode still is the one of which so much was read."""
        try:
            same = self._fingerprints.agree(name, name, inode, read)
        except Unavailable:
            return "it cannot be opened"
        if not same:
            self._suspect.add(name)
            return "it was rewritten from its start"
        self._suspect.discard(name)
        return ""

    def _size_elsewhere(self, name: str, inode: int, read: int) -> int | None:
        """Size of a stream's file under another name; None where it is gone.

        Another file may have got its inode.
        """
        elsewhere = self._directory.name_of(inode)
        if elsewhere is None:
            return None
        try:
            same = self._fingerprints.agree(name, elsewhere, inode, read)
        except Unavailable:
            return None
        return self._directory.size_of(inode) if same else None

    def _forget_departed(self, streams: Sequence[str]) -> None:
        """What was learnt of streams that left would grow with every name there ever was."""
        self._fingerprints.keep_only(streams)
        if len(self._seen) > 2 * len(streams) + SLACK:
            self._seen = {name: self._seen[name] for name in streams if name in self._seen}
            self._suspect &= set(streams)


def _is_rotated(name: str, names: set[str]) -> bool:
    """Whether a name goes on from that of another file, as in app.log.1 or app.log-20260101.

    Only after a name with an extension: `a-1` beside `a` is a stream of its own.
    """
    first = name.find(".")
    ends = [place for place, letter in enumerate(name) if letter in ".-" and place > first]
    return first > 0 and any(name[:end] in names for end in ends)
