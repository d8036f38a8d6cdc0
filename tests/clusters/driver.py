"""A driver as a process of its own: started on a cluster, listened to, killed."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from clusters.manager import Manager
from spark.killed_program import processes_below

TESTS = Path(__file__).parents[1]
LIMIT_S = 900.0  # also beside other load that takes nearly all of the machine
JVM = b"org.apache.spark.deploy.SparkSubmit"


class Driver:
    """A program of the trial on a cluster; what it told last, and all acts and moves so far."""

    def __init__(
        self, program: ModuleType, directory: Path, manager: Manager,
        settings: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        """`settings` are those of its spark-defaults.conf, if not the manager's alone."""
        self._errors = directory / "stderr.txt"
        self.application = ""
        self.executors: dict[str, str] = {}  # id -> host, of those that take tasks
        self.homes: dict[str, str] = {}  # key group -> executor
        self.acts: list[dict[str, Any]] = []
        self.moves: list[dict[str, Any]] = []
        self.steps: list[str] = []
        self.batches = 0
        self.ready = self.ended = self._reaped = False
        assert program.__file__ is not None
        with self._errors.open("ab") as errors:
            self.process = subprocess.Popen(
                [*manager.inside, sys.executable, program.__file__, str(directory)],
                stdout=subprocess.PIPE, stderr=errors, text=True,
                env=driver_environment(directory, manager, settings),
            )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                told = json.loads(line)
            except ValueError:
                continue
            if not isinstance(told, dict):
                continue
            self.application = told.get("application", self.application)
            self.executors = told.get("executors", self.executors)
            self.homes = told.get("homes", self.homes)
            self.ended = self.ended or told.get("ended", False)
            self.ready = self.ready or told.get("ready", False)
            self.batches += "batch" in told
            for name, kept in (("act", self.acts), ("moved", self.moves), ("step", self.steps)):
                if name in told:
                    kept.append(told[name])

    def until(self, what: str, holds: Callable[[], object], limit_s: float = LIMIT_S) -> float:
        """Wait for a condition, and say all there is to say where it does not come."""
        began_s = time.monotonic()
        while not holds():
            waited_s = time.monotonic() - began_s
            if self.process.poll() is not None:
                self._reader.join(LIMIT_S)
                if holds():
                    break
                raise AssertionError(f"the driver ended before {what}: {self.account()}")
            if waited_s > limit_s:
                raise AssertionError(f"{what} did not come in {limit_s:g} s: {self.account()}")
            time.sleep(0.2)
        return time.monotonic() - began_s

    def account(self) -> str:
        """What it saw and did, for a failed test."""
        said = self._errors.read_text(errors="replace")[-3000:]
        newest = "\n".join(self.steps[-12:])
        return f"\nexecutors {self.executors}\nacts {self.acts}\nsteps\n{newest}\nstderr\n{said}"

    def kill(self) -> None:
        """kill -9 its JVM, which is Spark's driver, and then the program."""
        for pid in list(processes_below(self.process.pid, JVM)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.kill()
        self._reap()

    def end(self, limit_s: float = LIMIT_S) -> None:
        """Wait until it ended by itself; killed if it does not."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(limit_s)
        if self.process.poll() is None:
            self.kill()
        elif not self._reaped:
            self._reap()

    def _reap(self) -> None:
        self._reaped = True
        self.process.wait(LIMIT_S)
        self._reader.join(LIMIT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()


def driver_environment(
    directory: Path, manager: Manager, settings: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The variables of a process whose sessions are on a cluster, by a spark-defaults.conf."""
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent), *_paths()])
    conf = directory / "conf"
    conf.mkdir(exist_ok=True)
    chosen = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.executorEnv.PYTHONPATH": paths,
        **(manager.settings if settings is None else settings),
    }
    text = "".join(f"{key} {value}\n" for key, value in chosen.items())
    (conf / "spark-defaults.conf").write_text(text)
    return {
        **os.environ, "PYTHONPATH": paths, "SPARK_CONF_DIR": str(conf),
        "PYSPARK_PYTHON": sys.executable, **manager.environment,
    }  # fmt: skip


def _paths() -> list[str]:
    """Where else modules are looked for: the code under test may not be the one installed."""
    return list(filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
