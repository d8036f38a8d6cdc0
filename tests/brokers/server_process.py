"""A server as a child process: started, asked until it answers, killed, started again."""

import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

START_LIMIT_S = 240.0


class ServerProcess:
    """One server in its own folder; ends with `stop` at the latest."""

    def __init__(self, command: Sequence[str], folder: Path, answers: Callable[[], bool]) -> None:
        self._command, self._folder, self._answers = list(command), folder, answers
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command, cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        deadline = time.monotonic() + START_LIMIT_S
        while not self._answers():
            said = f"; its log is {self._folder / 'server.log'}"
            assert self._process.poll() is None, f"{self._command[0]} ended at its start{said}"
            assert time.monotonic() < deadline, f"{self._command[0]} does not answer{said}"
            time.sleep(0.02)

    def signal(self, what: signal.Signals) -> None:
        """Let it hang, or go on."""
        assert self._process is not None, "the server does not run"
        self._process.send_signal(what)

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(START_LIMIT_S)
            self._process = None
