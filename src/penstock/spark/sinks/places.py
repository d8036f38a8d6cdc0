"""Where file sinks write: a local directory, each step durable, or a file system behind a URL."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from pyarrow import fs

from penstock.spark.checkpoint import durable_files


class Place(Protocol):
    """A file system; paths are as their sink has them, URLs included."""

    def exists(self, path: str) -> bool:
        """Whether there is anything at a path."""

    def names(self, path: str) -> list[str]:
        """What is in a directory, in order; nothing if it is not there."""

    def make(self, path: str) -> None:
        """Make a directory, and those above it."""

    def new_file(self, path: str) -> Any:
        """A stream into a file of a new name; its data is on the disk when it is closed."""

    def read(self, path: str) -> bytes | None:
        """What is in a small file; None if it is not there."""

    def replace(self, path: str, data: bytes) -> None:
        """Write a small file whole or not at all; it lasts when this returns."""

    def move(self, path: str, to: str) -> None:
        """Rename a file or directory; the name lasts once the directory it is in is synced."""

    def sync(self, path: str) -> None:
        """Make the names in a directory last."""

    def remove_tree(self, path: str) -> None:
        """Remove a directory, if it is there."""


class LocalPlace:
    """The machine's own file system, or one that is mounted."""

    def exists(self, path: str) -> bool:
        return _local(path).exists()

    def names(self, path: str) -> list[str]:
        directory = _local(path)
        return sorted(one.name for one in directory.iterdir()) if directory.is_dir() else []

    def make(self, path: str) -> None:
        """As of Place; readable for whoever the user lets read."""
        durable_files.make_directory(_local(path), 0o777)

    @contextmanager
    def new_file(self, path: str) -> Iterator[Any]:
        with durable_files.new_file(_local(path), 0o666) as stream:
            yield stream

    def read(self, path: str) -> bytes | None:
        try:
            return _local(path).read_bytes()
        except FileNotFoundError:
            return None

    def replace(self, path: str, data: bytes) -> None:
        """As of Place; readable for whoever the user lets read."""
        with durable_files.replacing(_local(path), 0o666) as stream:
            stream.write(data)

    def move(self, path: str, to: str) -> None:
        durable_files.rename(_local(path), _local(to))

    def sync(self, path: str) -> None:
        durable_files.sync_directory(_local(path))

    def remove_tree(self, path: str) -> None:
        durable_files.remove_tree(_local(path))


class RemotePlace:
    """A file system that pyarrow knows, whose files last once they are closed."""

    def __init__(self, system: fs.FileSystem) -> None:
        self._system = system

    def exists(self, path: str) -> bool:
        return bool(self._system.get_file_info(_inner(path)).type != fs.FileType.NotFound)

    def names(self, path: str) -> list[str]:
        found = self._system.get_file_info(fs.FileSelector(_inner(path), allow_not_found=True))
        return sorted(one.base_name for one in found)

    def make(self, path: str) -> None:
        self._system.create_dir(_inner(path), recursive=True)

    def new_file(self, path: str) -> Any:
        return self._system.open_output_stream(_inner(path))

    def read(self, path: str) -> bytes | None:
        try:
            with self._system.open_input_stream(_inner(path)) as stream:
                return bytes(stream.read())
        except OSError:  # each store has its own way to say that there is none
            if self.exists(path):
                raise
            return None

    def replace(self, path: str, data: bytes) -> None:
        with self._system.open_output_stream(_inner(path)) as stream:
            stream.write(data)

    def move(self, path: str, to: str) -> None:
        self._system.move(_inner(path), _inner(to))

    def sync(self, path: str) -> None:
        """Nothing to do."""

    def remove_tree(self, path: str) -> None:
        if self.exists(path):
            self._system.delete_dir(_inner(path))


def place_of(path: str) -> Place:
    """The file system of a path or URL."""
    if not is_url(path):
        return LocalPlace()
    system, _ = _found(path)
    return LocalPlace() if isinstance(system, fs.LocalFileSystem) else RemotePlace(system)


def is_url(path: str) -> bool:
    """Whether a path names its file system."""
    return "://" in path or path.startswith("file:")


def local_path(path: str) -> Path | None:
    """Where a path or `file:` URL is on this machine; None for a remote store."""
    return None if is_url(path) and not path.startswith("file:") else _local(path)


@lru_cache(maxsize=64)
def _found(path: str) -> tuple[fs.FileSystem, str]:
    system, inner = fs.FileSystem.from_uri(path)
    return system, inner


def _inner(path: str) -> str:
    return _found(path)[1]


def _local(path: str) -> Path:
    return Path(_inner(path) if is_url(path) else path)
