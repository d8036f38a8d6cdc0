"""The process that owns the JVM of an embedded cluster, and ends it without fail.

Master and worker are one JVM, whose command line is given.

It is run as a script, with the standard library only, so that it starts at once and does not
depend on how Penstock was imported. It ends everything when the pipe on its standard input
closes (the program that started it is gone, however it went), on SIGTERM, or when the JVM dies.
Should it be killed itself, the kernel kills the JVM (PR_SET_PDEATHSIG), and executors leave when
they lose their worker. What outlives a worker is handed to this process by the kernel
(PR_SET_CHILD_SUBREAPER), so nothing below it can be missed.
"""

import argparse
import contextlib
import ctypes
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
MOST_LOG_BYTES = 32 << 20  # of a child's log, and as much of the one before
MOST_ENDED = 8  # executors of an application whose directories stay once they have ended
_FORGET_S = 60.0
_POLL_S = 0.1
_GRACE_S = 5.0  # between SIGTERM and SIGKILL

_MASTER_READY = re.compile(r"Starting Spark master at (spark://\S+)")
_MASTER_PAGE = re.compile(r"Bound MasterWebUI to .*http://\S+:(\d+)")
_WORKER_READY = re.compile(r"(Successfully registered with master)")


@dataclass(frozen=True)
class ClusterState:
    """What is written down about a running cluster, for whoever wants to use or end it."""

    directory: str
    slots: int
    memory_mb: int
    supervisor_pid: int
    supervisor_started: int  # the kernel's start time: tells a reused pid from the real one
    master_url: str = ""
    page_url: str = ""
    failure: str = ""  # a sentence when the cluster could not be started
    worker: bool = True  # whether it is registered, so that there can be executors


class _Ended(Exception):
    """Someone wants the cluster to end, or it fell over."""


class _Orphaned(_Ended):
    """Nobody uses the cluster any more, nor waits for anything it could still do."""


def process_started(pid: int) -> int | None:
    """Start time of a live process in clock ticks since boot; None when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def shorten(log: Path, most_bytes: int = MOST_LOG_BYTES) -> None:
    """Begin a log anew that has grown long, and keep what was in it as the one before."""
    if log.exists() and log.stat().st_size > most_bytes:
        with contextlib.suppress(OSError):  # no room for both: a cluster does not end by its log
            shutil.copyfile(log, log.with_name(f"{log.name}.1"))  # whoever writes has it open
        os.truncate(log, 0)


def forget_ended(work: Path) -> None:
    """Remove what executors left that ended longest ago: their logs, and what they fetched.

    Spark keeps it until the application ends, which may be months. An executor's number grows with
    its age, and its processes work in its directory.
    """
    if not os.path.exists("/proc/self/cwd"):
        return  # nobody knows which of them live
    for application in work.glob("app-*"):
        numbers = sorted(int(one.name) for one in application.iterdir() if one.name.isdigit())
        if len(numbers) <= MOST_ENDED:
            continue
        used = _working_directories()
        made = [os.path.realpath(application / str(number)) for number in numbers]
        ended = [one for one in made if not any(f"{at}/".startswith(f"{one}/") for at in used)]
        for directory in ended[:-MOST_ENDED]:
            shutil.rmtree(directory, ignore_errors=True)


def last_lines(log: Path, count: int = 5) -> str:
    """The end of a log on one line; empty when there is none."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return ""
    return " | ".join([line.strip() for line in lines if line.strip()][-count:])


def write_state(path: Path, state: ClusterState) -> None:
    """Publish the state whole, readable by its owner only."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(asdict(state), file)
    draft.replace(path)


class Supervisor:
    """Starts master and worker, watches them, and ends them and what they have started."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._directory = Path(options.directory)
        self._command: list[str] = options.command
        self._slots: int = options.slots
        self._memory_mb: int = options.memory_mb
        self._state_path = Path(options.state)
        self._limit_s: float = options.limit_s
        self._parent = None if options.detached else os.getppid()
        self._cluster: int | None = None
        self._gone: set[int] = set()
        self._forget_at_s = 0.0

    def run(self) -> int:
        """Until the end of the cluster; the exit code."""
        signal.signal(signal.SIGTERM, _end)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        started, at_once = False, False
        try:
            self._start()
            started = True
            while True:
                self._watch(_POLL_S * 5)
        except _Ended as reason:
            at_once = isinstance(reason, _Orphaned)
            if not started:
                self._publish(failure=str(reason))
            return 0 if started else 1
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            self._end_all(at_once)
            if started:  # otherwise whoever asked for the cluster may want to see the logs
                self._state_path.unlink(missing_ok=True)
                shutil.rmtree(self._directory, ignore_errors=True)

    def _start(self) -> None:
        self._spawn()
        page_url = f"http://127.0.0.1:{self._logged(_MASTER_PAGE)}"
        master_url = self._logged(_MASTER_READY)
        if self._parent is not None:  # a driver may register while the worker starts
            self._publish(master_url=master_url, page_url=page_url, worker=False)
        self._logged(_WORKER_READY)
        self._publish(master_url=master_url, page_url=page_url)

    def _spawn(self) -> None:
        supervisor = os.getpid()

        def die_with_supervisor() -> None:
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != supervisor:
                os._exit(1)

        self._log.unlink(missing_ok=True)
        with open(self._log, "ab") as log:  # appended to, so that it can be shortened
            self._cluster = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._directory,
                preexec_fn=die_with_supervisor,  # safe: this process has one thread
            ).pid  # fmt: skip

    def _logged(self, wanted: re.Pattern[str]) -> str:
        """Wait until the log holds a line."""
        deadline = time.monotonic() + self._limit_s
        while time.monotonic() < deadline:
            if found := wanted.search(self._log.read_text(encoding="utf-8", errors="replace")):
                return found.group(1)
            self._watch(_POLL_S)
        raise _Ended(
            f"The cluster's JVM was not ready within {self._limit_s:g} s; the end of its log: "
            f"{last_lines(self._log)}"
        )

    def _watch(self, timeout_s: float) -> None:
        """Let a little time pass; raise when the cluster has to end."""
        if self._parent is None:
            time.sleep(timeout_s)
        else:
            readable, _, _ = select.select([0], [], [], timeout_s)
            # A fork of the parent may hold the pipe open after it, so its pid is watched as well.
            if (readable and not os.read(0, 1)) or os.getppid() != self._parent:
                raise _Orphaned("The program that started the cluster is gone.")
        self._reap()
        if self._cluster in self._gone:
            raise _Ended(
                f"The cluster's JVM ended by itself; the end of its log: {last_lines(self._log)}"
            )
        shorten(self._log)
        if time.monotonic() >= self._forget_at_s:
            self._forget_at_s = time.monotonic() + _FORGET_S
            with contextlib.suppress(OSError):  # a directory that Spark removes meanwhile
                forget_ended(self._directory / "work")
        self._gone.clear()  # executors that came to us and ended; a pid may be used again

    def _end_all(self, at_once: bool) -> None:
        """By signals; `at_once` leaves nobody time, as whoever starts again would wait for that."""
        if not at_once and self._cluster is not None and self._cluster not in self._gone:
            _signal(self._cluster, signal.SIGTERM)  # the worker in it ends its executors
            self._until_gone({self._cluster}, _GRACE_S)
        while left := _children_of(os.getpid()):
            for pid in left | _below(left):
                _signal(pid, signal.SIGKILL)
            self._until_gone(left, _GRACE_S)

    def _until_gone(self, pids: set[int], limit_s: float) -> None:
        deadline = time.monotonic() + limit_s
        while not pids <= self._gone and time.monotonic() < deadline:
            self._reap()
            time.sleep(_POLL_S / 2)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (pid := os.waitpid(-1, os.WNOHANG)[0]) > 0:
                self._gone.add(pid)

    def _publish(
        self, *, master_url: str = "", page_url: str = "", failure: str = "", worker: bool = True
    ) -> None:
        state = ClusterState(
            str(self._directory), self._slots, self._memory_mb, os.getpid(),
            process_started(os.getpid()) or 0, master_url, page_url, failure, worker,
        )  # fmt: skip
        write_state(self._state_path, state)

    @property
    def _log(self) -> Path:
        return self._directory / "logs" / "cluster.log"


def _end(_signal_number: int, _frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not cut the ending short
    raise _Ended("The cluster was asked to end.")


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _children_of(parent: int) -> set[int]:
    """Pids of a process's children, dead ones not counted (empty where there is no /proc)."""
    return {pid for pid, above in _parents().items() if above == parent}


def _below(above: set[int]) -> set[int]:
    """Pids of all that processes have started, and those in turn."""
    parents, found = _parents(), set(above)
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - above


def _working_directories() -> set[str]:
    """Of all processes that live, as far as they may be looked at."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            found.add(os.readlink(entry))
    return found


def _parents() -> dict[int, int]:
    """The parent of each process that lives."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError):
            fields = entry.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
            if fields[0] not in "ZX":
                parents[int(entry.parent.name)] = int(fields[1])
    return parents


def main() -> int:
    """Read the options and supervise."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--directory", required=True)
    parser.add_argument("--slots", type=int, required=True)
    parser.add_argument("--memory-mb", type=int, required=True)
    parser.add_argument("--state", required=True)
    parser.add_argument("--limit-s", type=float, default=60.0)
    parser.add_argument("--detached", action="store_true", help="live on after the starter")
    parser.add_argument("command", nargs="+", help="master and worker, as they are started")
    options = parser.parse_args()
    if options.detached:
        if child := os.fork():
            sys.stdout.write(str(child))  # the starter waits for this, not for the one that stays
            return 0
        os.dup2(2, 1)
    return Supervisor(options).run()


if __name__ == "__main__":
    sys.exit(main())
