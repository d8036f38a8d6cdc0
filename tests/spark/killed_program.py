"""A program that a test starts, follows line by line, and kills."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, Queue
from types import ModuleType

import pytest
from pyspark import cloudpickle

LIMIT_S = 180


class Program:
    """A file in a process of its own; its lines as they come, its errors in stderr.txt."""

    def __init__(self, file: str, directory: Path, master: str, *more: str) -> None:
        command = [sys.executable, file, str(directory), master, *more]
        self._errors_file = directory / "stderr.txt"
        self._errors = self._errors_file.open("ab")
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        self._lines: Queue[str] = Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.strip())
        self._lines.put("ended")

    def await_line(self, *starts: str) -> str:
        """The next line that begins in one of these ways."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except Empty:
                pytest.fail(f"no line {starts} within {LIMIT_S} s")
            if line.startswith((*starts, "ended")):
                return line

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        self.process.kill()
        self.close()

    def close(self) -> None:
        """Wait for the end."""
        self.process.wait(LIMIT_S)
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._errors.close()

    def errors(self) -> str:
        """The end of what it said of its failure."""
        return self._errors_file.read_text()[-3000:]


def finish(program: ModuleType, *arguments: object) -> None:
    """The last run, which works off what is left: here, where the JVM is warm; needs `no_session`.

    Functions of the program go to workers by value, as those of a script do.
    """
    cloudpickle.register_pickle_by_value(program)  # type: ignore[no-untyped-call]
    try:
        program.main(*arguments, once=True)
    finally:
        cloudpickle.unregister_pickle_by_value(program)  # type: ignore[no-untyped-call]


def processes_below(pid: int, word: bytes) -> Iterator[int]:
    """Descendants of a process that have a word in their command."""
    for child in _children(pid):
        try:
            command = Path(f"/proc/{child}/cmdline").read_bytes()
        except OSError:
            continue
        if word in command:
            yield child
        yield from processes_below(child, word)


def await_executors(pid: int) -> list[int]:
    """The executors of a program, as soon as it has any."""
    deadline = time.monotonic() + LIMIT_S
    while not (found := list(processes_below(pid, b"CoarseGrainedExecutorBackend"))):
        assert time.monotonic() < deadline, "no executor to kill"
        time.sleep(0.1)
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, task.read_text().split())
        except OSError:
            continue
    return found
