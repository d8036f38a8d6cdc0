"""The processes of a soak: the program with its cluster, and a page over its history."""

import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from spark.killed_program import processes_below

TESTS = Path(__file__).parent.parent
INSIDE = Path(__file__).parent / "inside"
EXECUTOR = b"CoarseGrainedExecutorBackend"
RUNNER = b"pyspark.sql.streaming.python_streaming_source_runner"
WORKER = b"pyspark.worker"
END_LIMIT_S = 300.0
_STACKS = {"java": ("jstack",), "python": ("py-spy", "dump", "--nonblocking", "--pid")}


class Soaked:
    """The program in a process of its own; counts what it tells of, by the first word."""

    def __init__(self, directory: Path, *arguments: object) -> None:
        command = [sys.executable, "-m", "soak.program", str(directory), *map(str, arguments)]
        self._errors_file = directory.parent / "stderr.txt"
        self._errors = self._errors_file.open("ab")
        self._begins = self._errors.tell()
        paths = [str(INSIDE), str(TESTS), str(TESTS.parent), *_paths()]
        environment = {
            "PYTHONPATH": os.pathsep.join(paths),
            "PENSTOCK_SOAK_FAULTS": str(directory.parent),
            "SPARK_LOCAL_DIRS": str(directory.parent / "local"),
        }
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self._errors, text=True,
            env=os.environ | environment,
        )  # fmt: skip
        self.told: Counter[str] = Counter()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.told[line.split(maxsplit=1)[0]] += 1

    @property
    def batches(self) -> int:
        """Batches that have ended."""
        return self.told["batch"]

    def said(self) -> str:
        """The end of what it said on stderr."""
        with self._errors_file.open("rb") as file:
            file.seek(self._begins)
            return file.read().decode(errors="replace")[-4000:]

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def below(self, word: bytes = b"") -> list[int]:
        """Processes below it, with a word in their command."""
        return list(processes_below(self.process.pid, word))

    def signal(self, what: signal.Signals) -> None:
        self.process.send_signal(what)

    def end(self) -> int:
        """Wait for its end."""
        code = self.process.wait(END_LIMIT_S)
        self._reader.join(END_LIMIT_S)
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._errors.close()
        return code


def _paths() -> list[str]:
    """Where else modules are looked for: the code under test may not be the one installed."""
    return list(filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))


class Page:
    """`penstock dashboard` over the history, in a process of its own."""

    def __init__(self, history: Path) -> None:
        self._process = subprocess.Popen(
            [Path(sys.executable).with_name("penstock"), "dashboard", "--history", history,
             "--port", "0"],
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._process.stderr is not None
        line = self._process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
        if found is None:
            raise RuntimeError(f"the page did not start: {line.strip()}")
        self._port = int(found[1])

    def newest_run(self) -> int:
        """The newest run it knows: a sign that it works."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        try:
            connection.request("GET", "/api/runs")
            runs = json.loads(connection.getresponse().read())["runs"]
        finally:
            connection.close()
        return max(int(run["id"]) for run in runs)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(END_LIMIT_S)
        if self._process.stderr is not None:
            self._process.stderr.close()


def await_true(what: str, holds: Callable[[], bool], limit_s: float, poll_s: float = 0.2) -> float:
    """Until a condition holds; returns how long that took, or says what did not come."""
    began_s = time.monotonic()
    while not holds():
        if time.monotonic() - began_s > limit_s:
            raise TimeoutError(f"{what} did not come within {limit_s:.0f} s")
        time.sleep(poll_s)
    return time.monotonic() - began_s


def note_states(pids: Iterable[int], folder: Path) -> None:
    """Write down what processes are doing, for whoever asks why they do not go on."""
    folder.mkdir(exist_ok=True)
    for pid in dict.fromkeys(pids):
        with suppress(OSError, subprocess.TimeoutExpired):
            process = Path(f"/proc/{pid}")
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            said = [command, (process / "status").read_text(), (process / "wchan").read_text()]
            looking = _STACKS["java" if "java" in command.split(maxsplit=1)[0] else "python"]
            if shutil.which(looking[0]):
                stacks = subprocess.run(
                    [*looking, str(pid)], capture_output=True, text=True, timeout=30, check=False
                )
                said.append(stacks.stdout)
            (folder / str(pid)).write_text("\n".join(said), encoding="utf-8")
