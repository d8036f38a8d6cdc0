"""A directory as one look sees it: names, sizes, and files that were renamed, by their inode."""

import fnmatch
import os
import time
from pathlib import Path

from penstock.errors import Unavailable

SETTLED_NS = 50_000_000  # clocks of file systems tick some times in a hundredth of a second


class Directory:
    """Calls are relative to an open directory, which saves looking up its path for every file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._prefix = f"{path}/"
        self._by_inode: dict[int, str] | None = None

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
        """Changes whenever a name comes or goes; None while it may still change unnoticed."""
        try:
            changed_ns = os.stat(self.path).st_mtime_ns
        except OSError:
            return None
        return changed_ns if time.time_ns() - changed_ns > SETTLED_NS else None

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
