"""A directory as one look sees it: names, sizes, and files that were renamed, by their inode.

An inode is given anew once its file is deleted. So of each file the first bytes, the last that had
been read and the last there were are remembered, and compared, as far as they have been read,
whenever it has grown. What is left of them for a runner that begins is a checksum, kept in the
admission log, of the last bytes that its predecessor admitted.
"""

import fnmatch
import os
import time
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import Unavailable

LENGTH_BYTES = 64
SLACK = 256  # streams that left are forgotten once they are many
SETTLED_S = 0.05  # clocks of file systems tick some times in a hundredth of a second


@dataclass(slots=True)
class _Fingerprint:
    inode: int
    pieces: list[tuple[int, bytes]]  # with the byte each begins at

    def fits(self, descriptor: int, read: int) -> bool:
        """Whether a file has the same pieces; what was not read yet may have changed."""
        for at, piece in self.pieces:
            length = min(len(piece), read - at)
            if length > 0 and os.pread(descriptor, length, at) != piece[:length]:
                return False
        return True


class Fingerprints:
    """By the name of the stream."""

    def __init__(self, directory: Path) -> None:
        self._prefix = f"{directory}/"
        self._known: dict[str, _Fingerprint] = {}
        self._recalled: dict[str, tuple[int, int, int]] = {}  # inode, bytes read, their checksum

    def __contains__(self, stream: str) -> bool:
        return stream in self._known

    def forget(self, stream: str) -> None:
        """What comes under this name now is another file."""
        self._known.pop(stream, None)
        self._recalled.pop(stream, None)

    def recall(self, stream: str, inode: int, read: int, checksum: int) -> None:
        """What was known before a restart; whatever is known since holds."""
        if stream not in self._known:
            self._recalled[stream] = (inode, read, checksum)

    def keep_only(self, streams: Collection[str]) -> None:
        """Forget streams that left."""
        if len(self._known) > 2 * len(streams) + SLACK:
            self._known = {name: self._known[name] for name in streams if name in self._known}
            recalled = self._recalled
            self._recalled = {name: recalled[name] for name in streams if name in recalled}

    def agree(self, stream: str, file: str, inode: int, read: int) -> bool:
        """Whether a file is the one whose first `read` bytes were read for a stream.

        If so, its fingerprint is taken anew. Raises Unavailable for a file that cannot be opened.
        """
        known = self._known.get(stream)
        try:
            descriptor = os.open(self._prefix + file, os.O_RDONLY)
        except OSError as error:
            raise Unavailable(f"{file} cannot be opened: {error.strerror}.") from error
        try:
            if known is not None and known.inode == inode and not known.fits(descriptor, read):
                return False
            if (inode, read) == self._recalled.get(stream, ())[:2]:
                if checksum_before(descriptor, read) != self._recalled[stream][2]:
                    return False
                del self._recalled[stream]
            # Most often all that is there now is what will have been read at the next look.
            size = os.fstat(descriptor).st_size
            places = {0, max(0, read - LENGTH_BYTES), max(0, size - LENGTH_BYTES)}
            pieces = [(at, os.pread(descriptor, LENGTH_BYTES, at)) for at in places]
        finally:
            os.close(descriptor)
        self._known[stream] = _Fingerprint(inode, pieces)
        return True


def checksum_before(descriptor: int, position: int) -> int:
    """Of the last bytes before a position in an open file."""
    at = max(0, position - LENGTH_BYTES)
    return zlib.crc32(os.pread(descriptor, position - at, at))


class Directory:
    """Calls are relative to an open directory, which saves looking up its path for every file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._prefix = f"{path}/"
        self._by_inode: dict[int, str] | None = None
        self._changed_ns, self._changed_seen_s = -1, 0.0  # when it changed last, and was seen to

    def names(self) -> list[str]:
        """Names of the files; a directory that is not there holds none."""
        try:
            with os.scandir(self.path) as entries:
                return [entry.name for entry in entries if entry.is_file()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise Unavailable(f"{self.path} cannot be listed: {error.strerror}.") from error

    def stamp(self) -> int | None:
        """Changes whenever a name comes or goes; None while it may still change unnoticed.

        How long it has been the same is counted here: the clock it is made by may be set, or be
        that of another machine.
        """
        try:
            changed_ns = os.stat(self.path).st_mtime_ns
        except OSError:
            return None
        now_s = time.monotonic()
        if changed_ns != self._changed_ns:
            self._changed_ns, self._changed_seen_s = changed_ns, now_s
        return changed_ns if now_s - self._changed_seen_s > SETTLED_S else None

    def stat(self, name: str) -> tuple[int, int] | None:
        """Inode and size; None when there is no such file."""
        try:
            found = os.stat(self._prefix + name)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Unavailable(f"{self.path}/{name} cannot be read: {error.strerror}.") from error
        return found.st_ino, found.st_size

    def forget(self) -> None:
        """Renamed files are to be looked for anew."""
        self._by_inode = None

    def size_of(self, inode: int) -> int | None:
        """Size of the file with an inode, whatever its name; None when it is not here."""
        name = self.name_of(inode)
        found = None if name is None else self.stat(name)
        return found[1] if found is not None and found[0] == inode else None

    def name_of(self, inode: int) -> str | None:
        """The name a file has now."""
        if self._by_inode is None:
            try:
                with os.scandir(self.path) as entries:
                    self._by_inode = {entry.inode(): entry.name for entry in entries}
            except FileNotFoundError:
                self._by_inode = {}
        return self._by_inode.get(inode)

    def head(self, name: str, length: int) -> bytes | None:
        """The first bytes of a file; None when it cannot be opened."""
        try:
            descriptor = os.open(f"{self.path}/{name}", os.O_RDONLY)
        except OSError:
            return None
        try:
            return os.pread(descriptor, length, 0)
        finally:
            os.close(descriptor)

    def checksum(self, name: str, inode: int, position: int) -> int:
        """Of the last bytes before a position in a stream's file; -1 where it cannot be read."""
        if position == 0:
            return -1
        found = self._checksum(name, inode, position)
        if found is None:  # it was renamed
            moved = self.name_of(inode)
            found = None if moved is None else self._checksum(moved, inode, position)
        return -1 if found is None else found

    def _checksum(self, name: str, inode: int, position: int) -> int | None:
        try:
            descriptor = os.open(self._prefix + name, os.O_RDONLY)
        except OSError:
            return None
        try:
            same = os.fstat(descriptor).st_ino == inode
            return checksum_before(descriptor, position) if same else None
        finally:
            os.close(descriptor)

    def path_of(self, name: str, inode: int) -> Path | None:
        """Where the file of a stream is that has an inode; None when it is gone."""
        found = self.stat(name)
        if found is not None and found[0] == inode:
            return self.path / name
        moved = self.name_of(inode)
        return None if moved is None else self.path / moved


def nothing_in(folder: Path, pattern: str) -> str | None:
    """Why a folder has no file to read; None if it has one."""
    if not folder.is_dir():
        return (
            f"{folder} is a file, not a folder"
            if folder.exists()
            else f"the folder {folder} does not exist yet"
        )
    if any(fits(name, pattern) for name in Directory(folder).names()):
        return None
    return f"no file in {folder} fits the pattern {pattern!r} yet"


def fits(name: str, pattern: str) -> bool:
    """Whether a file is a stream, by its name; hidden ones are still being made."""
    return not name.startswith(".") and fnmatch.fnmatchcase(name, pattern)
