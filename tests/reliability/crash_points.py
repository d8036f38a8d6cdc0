"""Stops, power cuts and errors at each single step of a scripted scenario, in turn.

A scenario does its work from whatever is on the disk, like a run that is started again. It is run
once undisturbed, which tells its steps and its result; then, for each step, it is disturbed there,
run again, and must come to the same result.
"""

import os
import random
import shutil
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import PenstockError
from penstock.spark.checkpoint import durable_files
from penstock.spark.checkpoint.durable_files import Step


class Stopped(BaseException):
    """The program ends here: nothing catches it, nothing cleans up after it."""


class Scenario(ABC):
    """Work in a directory that can be begun again after any interruption."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.failures: list[str] = []  # what was said of steps that failed
        self.disk: Disk | None = None  # where the power will be cut

    @abstractmethod
    def prepare(self) -> None:
        """What is there before; nobody disturbs it."""

    @abstractmethod
    def run(self) -> None:
        """Open everything anew and work to the end; after an error, `retried` goes on."""

    @abstractmethod
    def result(self) -> Any:
        """What a user sees at the end."""

    @abstractmethod
    def abandon(self) -> None:
        """Let go of what a process that ends lets go of: its locks."""

    def is_ours(self, path: Path) -> bool:
        """Whether a path is a file that Penstock relies on, and no other system's or output."""
        others = {"query", "queries", "out", "_staged"} & set(path.parts)
        named = path.name != "lock" and not durable_files.is_leftover(path.name)
        return path.is_file() and path.stat().st_size > 0 and named and not others

    def retried(self, step: Callable[[], Any]) -> Any:
        """Do a step, a second time with the same objects if the first attempt fails."""
        try:
            return step()
        except PenstockError as error:
            self.failures.append(str(error))
            return step()


@contextmanager
def watched(hook: Callable[[Step], None]) -> Iterator[None]:
    """Call a function at each step within the block."""
    durable_files.on_step = hook
    try:
        yield
    finally:
        durable_files.on_step = None


class At:
    """Does something at the step of a number; counts them otherwise."""

    def __init__(self, number: int | None, action: Callable[[Step], None]) -> None:
        self.seen = 0
        self._number, self._action = number, action

    def __call__(self, step: Step) -> None:
        mine = self.seen == self._number
        self.seen += 1
        if mine:
            self._action(step)


def stop(step: Step) -> None:
    """As kill -9 does."""
    raise Stopped


def fail(number: int) -> Callable[[Step], None]:
    """As a disk does."""

    def failing(step: Step) -> None:
        raise OSError(number, os.strerror(number), str(step.file))

    return failing


class Disk:
    """Knows what would be left after a power cut: what was synced, and nothing else.

    Data of a file goes back to what it was when last synced, the names of a directory likewise.
    What changes is told by the steps. What was synced is not: only a call of the system counts.
    """

    def __init__(self, grave: Path) -> None:
        grave.mkdir()
        self._grave = grave
        self._data: dict[int, bytes] = {}  # by inode: what was synced, of files changed since
        self._names: dict[Path, dict[str, int]] = {}  # likewise, by directory
        self._renamed: list[tuple[Path, Path]] = []  # from one directory to another

    def __call__(self, step: Step) -> None:
        """Follow a step."""
        if step.when == "before":
            if step.what in ("create", "copy", "rename", "link", "remove", "make"):
                self.names_change(step.file.parent)
            if step.source is not None:
                self.names_change(step.source.parent)
                self._renamed.append((step.source.parent, step.file.parent))
            if step.what in ("write", "shorten"):
                self.data_changes(step.file)
        elif step.when == "after" and step.what in ("create", "copy"):
            self.created(step.file)
        elif step.when == "after" and step.what == "remove":
            self._names.pop(step.file, None)  # a directory of that name is another one from now on

    def created(self, file: Path) -> None:
        """A file is new: nothing of its data is synced."""
        self._data[file.stat().st_ino] = b""

    def names_change(self, folder: Path) -> None:
        """Keep the names of a directory, with what they stand for, until it is synced."""
        if folder in self._names or not folder.is_dir():
            return
        self._names[folder] = {path.name: path.stat().st_ino for path in folder.iterdir()}
        for path in folder.iterdir():
            kept = self._grave / str(path.stat().st_ino)
            if path.is_file() and not kept.exists():
                os.link(path, kept)

    def data_changes(self, file: Path) -> None:
        """Keep the data of a file until it is synced."""
        self._data.setdefault(file.stat().st_ino, file.read_bytes())

    @contextmanager
    def connected(self) -> Iterator[None]:
        """See what is synced within the block."""
        with pytest.MonkeyPatch.context() as patch:
            for name in ("fsync", "fdatasync"):
                patch.setattr(os, name, self._following(getattr(os, name)))
            yield

    def _following(self, sync: Callable[[int], None]) -> Callable[[int], None]:
        def synced(descriptor: int) -> None:
            sync(descriptor)
            found = os.fstat(descriptor)
            if stat.S_ISDIR(found.st_mode):
                folder = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
                self._names.pop(folder, None)
                self._renamed = [both for both in self._renamed if folder not in both]
            else:
                self._data.pop(found.st_ino, None)

        return synced

    def cut_power(self, luck: random.Random | None = None) -> None:
        """Lose what was not synced; with luck some of it, as a disk writes what it likes first."""
        if luck is not None:
            self._keep_some(luck)
        limbo: dict[int, Path] = {}
        for folder, names in self._names.items():
            for path in list(folder.iterdir()) if folder.is_dir() else []:
                inode = path.stat().st_ino
                if names.get(path.name) == inode:
                    continue
                away = self._grave / f"{inode}.away"
                if not away.exists():
                    path.rename(away)
                    limbo[inode] = away
                else:
                    path.unlink()
        for folder, names in self._names.items():
            for name, inode in names.items():
                buried = self._grave / str(inode)
                if not folder.is_dir() or (folder / name).exists():
                    continue
                if buried.exists():
                    os.link(buried, folder / name)
                elif inode in limbo:
                    limbo.pop(inode).rename(folder / name)
        for root in (self._grave, self._grave.parent):
            for where, _, files in os.walk(root):
                for file in files:
                    path = Path(where) / file
                    data = self._data.get(path.stat().st_ino)
                    if data is not None:
                        path.write_bytes(data)

    def _keep_some(self, luck: random.Random) -> None:
        """Some directories, and some data. A rename is made in both directories or in none."""
        lost: dict[Path, float] = {folder: luck.random() for folder in self._names}
        of_spark = luck.random()  # its log of a query has an order of its own
        lost |= {folder: of_spark for folder in lost if "query" in folder.parts}
        for source, target in self._renamed:
            fates = [lost[folder] for folder in (source, target) if folder in lost]
            lost |= {folder: fates[0] for folder, fate in lost.items() if fate in fates}
        self._names = {folder: n for folder, n in self._names.items() if lost[folder] < 0.5}
        self._data = {inode: data for inode, data in self._data.items() if luck.random() < 0.5}


class Campaign:
    """All steps of a kind of scenario; each attempt has a directory of its own."""

    def __init__(self, kind: type[Scenario], room: Path) -> None:
        self._kind, self._room, self._made = kind, room, 0
        undisturbed = self._new()
        counting = At(None, stop)
        with watched(counting):
            undisturbed.run()
        undisturbed.abandon()
        self.points = counting.seen
        self.expected = undisturbed.result()

    def stopped(self, number: int, again: int | None = None) -> None:
        """Killed at a step, perhaps once more while it recovers, then run to its end."""
        scenario = self._new()
        for moment in (number, again):
            if moment is not None:
                with watched(At(moment, stop)):
                    self._interrupted(scenario, must=moment is number)
        self._end(scenario)

    def without_power(self, number: int, luck: random.Random | None = None) -> None:
        """The power is cut at a step; all that was not synced is lost, or with luck some of it."""
        scenario = self._new()
        disk = scenario.disk = Disk(self._room / "grave")
        at = At(number, stop)

        def hook(step: Step) -> None:
            disk(step)
            at(step)

        with watched(hook), disk.connected():
            self._interrupted(scenario, must=True)
        scenario.disk = None
        disk.cut_power(luck)
        shutil.rmtree(self._room / "grave")
        self._end(scenario)

    def failed(self, number: int, error: int) -> None:
        """A step fails, what it belongs to is done again; then a run finds everything in order."""
        scenario = self._new()
        with watched(At(number, fail(error))):
            scenario.run()
        scenario.abandon()
        assert scenario.failures
        for said in scenario.failures:
            assert said.endswith(".")
            assert "\n" not in said
        self._end(scenario)

    def damaged(self, number: int, moments: random.Random) -> bool:
        """A byte of a file of ours is changed while nothing runs: refused by its name, or harmless.

        Whether it was refused; with the byte set right all goes on.
        """
        scenario = self._new()
        with watched(At(number, stop)):
            self._interrupted(scenario, must=True)
        files = sorted(path for path in scenario.directory.rglob("*") if scenario.is_ours(path))
        if not files:
            return False
        file = moments.choice(files)
        before = file.read_bytes()
        place = moments.randrange(len(before))
        changed = bytes([before[place] ^ moments.randrange(1, 256)])
        file.write_bytes(before[:place] + changed + before[place + 1 :])
        said = self._refusal(scenario)
        if not said:
            return False
        assert file.name in said, f"{file}: {said}"
        assert "\n" not in said
        file.write_bytes(before)
        self._end(scenario)
        return True

    def _refusal(self, scenario: Scenario) -> str:
        """What a run to the end says when it refuses to; nothing when all is as it should be."""
        try:
            scenario.run()
            scenario.abandon()
            found = scenario.result()
        except PenstockError as refusal:
            scenario.abandon()
            return str(refusal)
        assert found == self.expected, "what was damaged was read as data"
        return ""

    def _interrupted(self, scenario: Scenario, must: bool) -> None:
        if must:
            with pytest.raises(Stopped):
                scenario.run()
        else:
            with suppress(Stopped):
                scenario.run()
        scenario.abandon()

    def _end(self, scenario: Scenario) -> None:
        scenario.run()
        scenario.abandon()
        assert scenario.result() == self.expected
        left = [p for p in scenario.directory.rglob("*") if durable_files.is_leftover(p.name)]
        assert not left
        shutil.rmtree(scenario.directory)

    def _new(self) -> Scenario:
        self._made += 1
        scenario = self._kind(self._room / str(self._made))
        scenario.directory.mkdir()
        scenario.prepare()
        return scenario
