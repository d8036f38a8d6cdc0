"""The host: takes submissions, keeps them, runs each by itself, and says how they are.

It knows no Spark: what runs a topology stands behind `Runner`. Each topology lives in a thread of
its own; whatever it does there, the others go on.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from penstock.errors import Infeasible, InvalidInput, PenstockError
from penstock.spark.host.registry import Registry
from penstock.spark.host.submission import Submission, read_submission

log = logging.getLogger(__name__)

STOP_LIMIT_S = 90.0
MOST_LINES = 10_000  # of a log that are shown
State = Literal["starting", "running", "failed", "ended", "stopped"]


class Running(Protocol):
    """One topology that runs."""

    def wait(self) -> None:
        """Until its streams end or it is stopped; raises what it failed with."""

    def stop(self) -> None:
        """End it between two batches."""

    def status(self) -> Mapping[str, Any]:
        """How it is: processors, results in time, what waits."""


class Runner(Protocol):
    """What runs topologies."""

    def check(self, submission: Submission, code: Path) -> None:
        """Refuse, in a sentence, what cannot run; a file that hangs or ends must not harm us."""

    def start(self, submission: Submission, code: Path, checkpoint: Path) -> Running:
        """Run it from where its checkpoint left off."""

    def crowded(self, topologies: int) -> str | None:
        """A sentence where so many cannot all have what they need at least."""


@dataclass
class _Hosted:
    submission: Submission
    state: State = "starting"
    why: str = ""
    running: Running | None = None
    thread: threading.Thread | None = None
    ending: bool = False


class Host:
    """The topologies of one cluster, by name."""

    def __init__(self, registry: Registry, runner: Runner) -> None:
        self._registry, self._runner = registry, runner
        self._lock = threading.RLock()
        self._hosted: dict[str, _Hosted] = {}
        self._does: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "submit": self._submit,
            "ps": lambda _: {"topologies": self.list()},
            "stop": lambda request: self._stop(_name(request), bool(request.get("forget"))),
            "restart": lambda request: self._restart(_name(request)),
            "logs": lambda request: self._logs(_name(request)),
        }

    def come_back(self) -> None:
        """Start all that was submitted before, each by itself."""
        found, damaged = self._registry.submissions()
        for sentence in damaged:
            log.warning("a submission is not started: %s", sentence)
        for submission in found:
            if submission.stopped:
                self._hosted[submission.name] = _Hosted(submission, "stopped")
            else:
                self._start(submission)

    def handle(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Do what is asked; refusals are errors of ours."""
        wanted = request.get("do")
        if not isinstance(wanted, str) or wanted not in self._does:
            raise InvalidInput(f"do is {wanted!r}; allowed: {', '.join(self._does)}.")
        return self._does[wanted](request)

    def list(self) -> list[dict[str, Any]]:
        """All topologies, in the order of their names."""
        with self._lock:
            hosted = sorted(self._hosted.items())
        return [_described(one) for _, one in hosted]

    def end(self) -> None:
        """Stop everything between two batches; it all comes back with the next start."""
        for hosted in list(self._hosted.values()):
            self._end(hosted)

    def _submit(self, request: Mapping[str, Any]) -> dict[str, Any]:
        submission = read_submission(request.get("submission"))
        with self._lock:
            taken = self._hosted.get(submission.name)
            if taken is not None:
                raise InvalidInput(
                    f"name is {submission.name!r}, which is taken (it is {taken.state}); give "
                    "another --name, or stop that one with `penstock stop --forget`."
                )
            warning = self._runner.crowded(len(self._hosted) + 1)
            if warning is not None and request.get("strict"):
                raise Infeasible(warning)
            self._hosted[submission.name] = _Hosted(submission)  # the name is taken from here on
        try:
            self._runner.check(submission, self._registry.unpack(submission))
            self._registry.keep(submission)
        except BaseException:
            with self._lock:
                del self._hosted[submission.name]
            raise
        self._start(submission)
        return {"name": submission.name, "warning": warning}

    def _stop(self, name: str, forget: bool) -> dict[str, Any]:
        hosted = self._known(name)
        # First the record: killed in between, it must not come back.
        self._registry.keep(replace(hosted.submission, stopped=True))
        self._end(hosted)
        if forget:
            self._registry.forget(name)
            with self._lock:
                del self._hosted[name]
            return {"name": name, "detail": "stopped and forgotten; its checkpoint is still there"}
        hosted.submission = replace(hosted.submission, stopped=True)
        hosted.state, hosted.why = "stopped", ""
        return {"name": name, "detail": "stopped; `penstock restart` goes on where it was"}

    def _restart(self, name: str) -> dict[str, Any]:
        hosted = self._known(name)
        self._end(hosted)
        submission = replace(hosted.submission, stopped=False)
        self._registry.keep(submission)
        self._start(submission)
        return {"name": name, "detail": "started again from its checkpoint"}

    def _logs(self, name: str) -> dict[str, Any]:
        self._known(name)
        file = self._registry.log_file(name)
        try:
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            lines = []
        return {"name": name, "lines": lines[-MOST_LINES:]}

    def _known(self, name: str) -> _Hosted:
        with self._lock:
            if name not in self._hosted:
                known = ", ".join(sorted(self._hosted)) or "none"
                raise InvalidInput(f"no topology is named {name!r}; known: {known}.")
            return self._hosted[name]

    def _start(self, submission: Submission) -> None:
        hosted = _Hosted(submission)
        with self._lock:
            self._hosted[submission.name] = hosted
        hosted.thread = threading.Thread(
            target=self._run, args=(hosted,), name=f"topology-{submission.name}", daemon=True
        )
        hosted.thread.start()

    def _run(self, hosted: _Hosted) -> None:
        """The life of one topology; what it raises ends it, and nothing else."""
        submission = hosted.submission
        try:
            code = self._registry.unpack(submission)
            running = self._runner.start(
                submission, code, self._registry.checkpoint(submission.name)
            )
            with self._lock:
                hosted.running, hosted.state = running, "running"
                ending = hosted.ending
            if ending:  # told while it started
                running.stop()
            self._say(submission.name, "runs")
            running.wait()
            hosted.state = "stopped" if hosted.ending else "ended"
        except PenstockError as error:
            hosted.state, hosted.why = "failed", str(error)
        except BaseException as error:  # noqa: BLE001 - a user's code may raise anything
            hosted.state, hosted.why = "failed", f"{type(error).__name__}: {error}"
        finally:
            self._say(submission.name, f"{hosted.state} {hosted.why}".strip())
            if hosted.running is not None:
                try:
                    hosted.running.stop()
                except Exception as error:  # noqa: BLE001 - it is over either way
                    self._say(submission.name, f"did not end in good order: {error}")

    def _end(self, hosted: _Hosted) -> None:
        with self._lock:
            hosted.ending, running = True, hosted.running
        if running is not None:
            running.stop()
        if hosted.thread is not None:
            hosted.thread.join(STOP_LIMIT_S)
            if hosted.thread.is_alive():
                raise PenstockError(
                    f"{hosted.submission.name!r} has not ended within {STOP_LIMIT_S:g} s; the "
                    "others are not affected."
                )

    def _say(self, name: str, line: str) -> None:
        """A line of a topology's log."""
        from datetime import UTC, datetime

        file = self._registry.log_file(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8") as stream:
            stream.write(f"{datetime.now(tz=UTC).isoformat(timespec='seconds')} {line}\n")


def _name(request: Mapping[str, Any]) -> str:
    name = request.get("name")
    if not isinstance(name, str):
        raise InvalidInput("name must be given, as text.")
    return name


def _described(hosted: _Hosted) -> dict[str, Any]:
    submission, running = hosted.submission, hosted.running
    status: Mapping[str, Any] = {}
    if running is not None and hosted.state == "running":
        try:
            status = running.status()
        except Exception as error:  # noqa: BLE001 - one that cannot say how it is hides no other
            status = {"note": f"cannot say how it is: {error}"}
    return {
        "name": submission.name,
        "state": hosted.state,
        "why": hosted.why,
        "file": submission.file,
        "topology": submission.topology,
        "community": submission.community,
        "weight": submission.weight,
        "max_latency_s": submission.max_latency_s,
        "share": submission.share,
        **status,
    }
