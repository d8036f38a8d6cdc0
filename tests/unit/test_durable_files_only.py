"""What must survive a crash is changed in durable_files.py alone, and what fails there says so."""

import ast
import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.errors import PenstockError
from penstock.spark.channels.log import Channel
from penstock.spark.checkpoint import durable_files
from penstock.spark.checkpoint.layout import Checkpoint
from penstock.spark.sources.control import Controls
from penstock.spark.sources.log import AdmissionLog

SPARK = Path(durable_files.__file__).parents[1]
ROOMS = ("checkpoint", "channels", "sinks", "sources", "routes")
STEPS = "checkpoint/durable_files.py"
ALLOWED = {
    "checkpoint/room.py has_room": "asks for room by a file that has no name",
    "routes/exchange.py RouteExchange.report": "a report may be lost: the next one says it again",
    "routes/exchange.py RouteExchange.forget_reports": "one that is still there is removed later",
    "sources/status.py _replace": "for monitoring; it is written again within a second",
}
OF_OS = {
    "rename", "renames", "replace", "link", "symlink", "unlink", "remove", "rmdir", "removedirs",
    "mkdir", "makedirs", "truncate", "ftruncate", "write", "pwrite", "writev", "mknod", "fsync",
    "fdatasync", "sendfile", "copy_file_range",
}  # fmt: skip
OF_PATH = {
    "write_text", "write_bytes", "mkdir", "unlink", "rename", "rmdir", "touch", "symlink_to",
    "hardlink_to",
}  # fmt: skip
MODULES = {"shutil", "tempfile"}  # whatever is called of them
CREATING = ("O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND", "O_TRUNC")
SCHEMA = '{"type":"struct","fields":[]}'


def raw_writes(tree: ast.AST, inside: tuple[str, ...] = ()) -> Iterator[str]:
    """The functions that change a file by themselves, as often as they do."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Call) and changes(node):
            yield ".".join(inside)
        # Under another name it could not be found.
        if isinstance(node, ast.ImportFrom) and node.module in {"os", *MODULES}:
            yield ".".join((*inside, "import"))
        named = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        yield from raw_writes(node, (*inside, node.name) if named else inside)


def changes(call: ast.Call) -> bool:
    """Whether this is a call that writes, makes, names or removes a file."""
    whose, _, name = ast.unparse(call.func).rpartition(".")
    if whose == "durable_files":
        return False
    if whose in MODULES or (whose == "os" and name in OF_OS):
        return True
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    if whose == "os" and name == "open":
        flags = " ".join(ast.unparse(argument) for argument in arguments[1:])
        return any(flag in flags for flag in CREATING)
    if name in ("open", "fdopen", "OSFile"):
        modes = [one.value for one in arguments if isinstance(one, ast.Constant)]
        return any(isinstance(mode, str) and set(mode) & set("wax+") for mode in modes)
    of_path = name == "replace" and len(call.args) == 1 and not call.keywords  # of texts: two
    return bool(whose) and (of_path or name in OF_PATH)


@pytest.mark.parametrize(
    "text",
    [
        "open('f', 'w')", "Path('f').open(mode='ab')", "io.open(f, 'x')", "os.fdopen(1, 'wb')",
        "os.open(f, os.O_RDWR | os.O_CREAT)", "os.rename(a, b)", "a.replace(b)", "a.rename(b)",
        "os.fsync(1)", "path.parent.mkdir()", "file.unlink()", "file.write_bytes(b'')",
        "shutil.move(a, b)", "tempfile.mkdtemp()", "from os import rename", "pa.OSFile(f, 'wb')",
    ],
)  # fmt: skip
def test_a_raw_change_is_known(text: str) -> None:
    assert list(raw_writes(ast.parse(text)))


@pytest.mark.parametrize(
    "text",
    [
        "open('f')", "os.open(f, os.O_RDONLY)", "text.replace('a', 'b')", "stream.write(b'')",
        "durable_files.rename(a, b)", "replace(entry, seq=1)", "rename(a, b)", "f.open('rb')",
    ],
)  # fmt: skip
def test_what_reads_is_no_change(text: str) -> None:
    assert not list(raw_writes(ast.parse(text)))


def test_durable_files_are_changed_by_steps_alone() -> None:
    found = {
        f"{file.relative_to(SPARK)} {function}"
        for room in ROOMS
        for file in (SPARK / room).rglob("*.py")
        if str(file.relative_to(SPARK)) != STEPS
        for function in raw_writes(ast.parse(file.read_text(encoding="utf-8")))
    }
    assert found == set(ALLOWED), "durable_files.py has the steps; what may be lost is listed here"


def no_lock_file(monkeypatch: pytest.MonkeyPatch) -> None:
    really = os.open

    def failing(path: str | Path, flags: int, mode: int = 0o777) -> int:
        if str(path).endswith("lock"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return really(path, flags, mode)

    monkeypatch.setattr(os, "open", failing)


def no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", failing)


def no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(path: Path, *_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(Path, "mkdir", failing)


def hold(channel: Channel) -> None:
    with channel.held("r"):
        raise AssertionError("held without a lock")


@pytest.mark.parametrize("failure", [no_lock_file, no_locks])
@pytest.mark.parametrize(
    "use",
    [
        lambda folder: Channel(folder / "channel").register("x"),
        lambda folder: Channel(folder / "channel").advance("x", 0),
        lambda folder: hold(Channel(folder / "channel")),
        lambda folder: Channel.create(folder / "channel", SCHEMA),
        lambda folder: Checkpoint(folder / "checkpoint").__enter__(),
        lambda folder: AdmissionLog(folder / "log"),
        lambda folder: Controls(folder / "sources").order(["s"], shed=0.2),
    ],
    ids=["register", "advance", "held", "create", "checkpoint", "admission", "control"],
)
def test_a_lock_that_cannot_be_had_is_said_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: Callable[[Path], object],
    failure: Callable[[pytest.MonkeyPatch], None],
) -> None:  # fmt: skip
    Channel.create(tmp_path / "channel", SCHEMA)
    with Checkpoint(tmp_path / "checkpoint"):
        pass
    AdmissionLog(tmp_path / "log").close()
    Controls(tmp_path / "sources").order(["s"], shed=0.1)
    failure(monkeypatch)
    with pytest.raises(PenstockError, match=r"(No space left|No locks available).*\.(\n|$)"):
        use(tmp_path)


def test_a_folder_that_cannot_be_made_is_said_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_folder(monkeypatch)
    for use in (
        lambda: Controls(tmp_path / "sources").order(["s"], shed=0.2),
        lambda: durable_files.make_new_directory(tmp_path / "0"),
    ):
        with pytest.raises(PenstockError, match="No space left"):
            use()


def test_a_directory_that_is_there_is_not_made_new(tmp_path: Path) -> None:
    durable_files.make_new_directory(tmp_path / "0")
    with pytest.raises(FileExistsError):
        durable_files.make_new_directory(tmp_path / "0")
