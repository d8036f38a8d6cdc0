"""Every change to a file that must survive a crash: written beside, synced, then named.

All durable files of ours (commit records, admission log, channels, plan records, carried-over
state, route tables, control files) are changed here and nowhere else, by steps that are each done
or not done. `on_step` is called before and after each of them: a test stops the program there, or
lets the step fail.

A name ending in `.new` is nobody's yet. It is unique to its attempt, so two writers of one file
never share one, and what a killed attempt left is never written to again; whoever holds the lock
of a directory may remove it (`remove_leftovers`).
"""

import ctypes
import errno
import fcntl
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from penstock.errors import PenstockError
from penstock.spark.checkpoint.sealed import sealed

SCRATCH = ".new"
_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE, which Python has no names for
_ADVICE = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EACCES: "give this user the permission",
    errno.EPERM: "give this user the permission",
    errno.EROFS: "make the file system writable",
    errno.ENOLCK: "use a file system with locks",
}


@dataclass(frozen=True)
class Step:
    """One change of one file, about to be made ("before"), half made ("within") or just made."""

    when: str
    what: str
    file: Path
    source: Path | None = None  # of a rename or link


on_step: Callable[[Step], None] | None = None  # for tests


class StorageFailure(PenstockError, OSError):
    """A durable file could not be changed; nothing that was promised before is lost."""

    def __init__(self, what: str, path: Path, error: OSError) -> None:
        reason = error.strerror or type(error).__name__
        advice = _ADVICE.get(error.errno or 0, "look at the disk")
        super().__init__(f"cannot {what} {path}: {reason}; {advice}, and start again.")
        self.errno, self.strerror = error.errno, reason

    def __str__(self) -> str:
        return str(self.args[0])


def write_atomically(file: Path, value: dict[str, Any]) -> None:
    """Write a JSON file with its checksum, whole or not at all, on the disk before returning."""
    with replacing(file) as stream:
        stream.write(sealed(value))


@contextmanager
def replacing(file: Path, mode: int = 0o600) -> Iterator[BinaryIO]:
    """Write a file whole or not at all: what is written takes its name when the block ends."""
    with _scratch(file) as scratch:
        with new_file(scratch, mode) as stream:
            yield stream
        rename(scratch, file)
    sync_directory(file.parent)


def write_new(file: Path, value: dict[str, Any]) -> None:
    """Write a JSON file that must not be there yet; FileExistsError, and no change, if it is."""
    with _scratch(file) as scratch:
        with new_file(scratch) as stream:
            stream.write(sealed(value))
        with _step("link", file, scratch):
            os.link(scratch, file)  # unlike a rename, a link never replaces what is there
        remove(scratch)
    sync_directory(file.parent)


@contextmanager
def new_file(file: Path, mode: int = 0o600) -> Iterator[BinaryIO]:
    """A file of a name nobody has; its data, not its name, is on the disk when the block ends."""
    with _step("create", file):
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with _step("write", file), os.fdopen(descriptor, "wb") as stream:
        yield stream
        stream.flush()
        with _step("sync", file):
            os.fsync(stream.fileno())


@contextmanager
def exclusive(lock: Path, wait: bool = True, mode: int = 0o600) -> Iterator[None]:
    """One thread or process at a time; the lock ends with its process, however that ends.

    Who does not want to wait gets a BlockingIOError while somebody else has it.
    """
    descriptor = locked(lock, wait, mode)
    try:
        yield
    finally:
        os.close(descriptor)


def locked(lock: Path, wait: bool = True, mode: int = 0o600) -> int:
    """As `exclusive`, until the descriptor is closed."""
    with ExitStack() as opened_here:
        with _step("lock", lock):
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, mode)
            opened_here.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        opened_here.pop_all()
    return descriptor


def opened(file: Path) -> int:
    """A file that is there, to be read and appended to."""
    with _step("open", file):
        return os.open(file, os.O_RDWR | os.O_APPEND)


def append(descriptor: int, file: Path, data: bytes) -> None:
    """Add to a file open for appending; it is on the disk when this returns."""
    with _step("write", file):
        half = len(data) // 2 if on_step is not None else len(data)
        _write_all(descriptor, data[:half])
        _at(Step("within", "write", file))
        _write_all(descriptor, data[half:])
    with _step("sync", file):
        os.fdatasync(descriptor)


def cut(descriptor: int, file: Path, length: int) -> None:
    """Drop the end of an open file."""
    with _step("shorten", file):
        os.ftruncate(descriptor, length)
    with _step("sync", file):
        os.fsync(descriptor)


def rename(source: Path, target: Path) -> None:
    """Give a file or directory another name; the directory of that name is to be synced after."""
    with _step("rename", target, source):
        source.rename(target)


def exchange(one: Path, other: Path) -> bool:
    """Let two directories have each other's names, at once; False where that cannot be done."""
    with _step("rename", one, other):
        return _exchanged(one, other)


def remove(file: Path) -> None:
    """Remove a file, if it is there."""
    with _step("remove", file):
        file.unlink(missing_ok=True)


def remove_tree(directory: Path) -> None:
    """Remove a directory and what is in it, if it is there."""
    for folder, _, files in os.walk(directory, topdown=False):
        for name in files:
            remove(Path(folder) / name)
        with _step("remove", Path(folder)):
            os.rmdir(folder)


def make_directory(directory: Path, mode: int = 0o700) -> bool:
    """Make a directory and those above it, private and on the disk; False if it is there."""
    if directory.is_dir():
        return False
    make_directory(directory.parent, 0o777)
    with _step("make", directory):
        directory.mkdir(mode, exist_ok=True)
    sync_directory(directory.parent)
    return True


def make_new_directory(directory: Path) -> None:
    """Make a private directory; FileExistsError if it is there."""
    with _step("make", directory):
        directory.mkdir(0o700)
    sync_directory(directory.parent)


def copy_tree(source: Path, target: Path) -> None:
    """Copy a directory; the copy is on the disk once `sync_tree` was called."""
    with _step("make", target):
        target.mkdir(0o700)
    for found in sorted(source.iterdir()):
        if found.is_dir():
            copy_tree(found, target / found.name)
        else:
            with _step("copy", target / found.name):
                shutil.copy2(found, target / found.name)


def sync_file(file: Path) -> None:
    """The data of a file that somebody else wrote, to the disk."""
    with _step("sync", file):
        _sync(file)


def sync_directory(directory: Path) -> None:
    """The names in a directory, to the disk."""
    with _step("sync", directory):
        _sync(directory)


def sync_tree(directory: Path) -> None:
    """A directory and all that is in it, to the disk."""
    for folder, _, files in os.walk(directory):
        for name in files:
            sync_file(Path(folder) / name)
        sync_directory(Path(folder))
    sync_directory(directory.parent)


def remove_leftovers(directory: Path) -> None:
    """Remove what attempts that were killed left; only for whoever keeps all others out."""
    for folder, _, files in os.walk(directory):
        for name in files:
            if is_leftover(name):
                remove(Path(folder) / name)


def is_leftover(name: str) -> bool:
    """Whether a file is, or was, of an attempt that has not come to its end."""
    return name.endswith(SCRATCH)


@contextmanager
def _scratch(file: Path) -> Iterator[Path]:
    """A name of its own for an attempt at a file; nothing is left of one that fails."""
    scratch = file.with_name(f".{file.name}.{uuid.uuid4().hex[:12]}{SCRATCH}")
    try:
        yield scratch
    except Exception:
        with suppress(OSError):
            scratch.unlink(missing_ok=True)
        raise


@contextmanager
def _step(what: str, file: Path, source: Path | None = None) -> Iterator[None]:
    try:
        _at(Step("before", what, file, source))
        yield
        _at(Step("after", what, file, source))
    except (BlockingIOError, FileExistsError, FileNotFoundError, StorageFailure):
        raise  # these tell their callers something
    except OSError as error:
        raise StorageFailure(what, file, error) from error


def _exchanged(one: Path, other: Path) -> bool:
    renamed = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)  # of Linux
    if renamed is None:
        return False
    if renamed(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number), str(one))


def _at(step: Step) -> None:
    if on_step is not None:
        on_step(step)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
