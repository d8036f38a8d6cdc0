"""The host: takes submissions, keeps them, runs each by itself, and says how they are.

It knows no Spark: what runs a topology stands behind `Runner`. Each topology lives in a thread of
its own; whatever it does there, the others go on.
"""

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from penstock.errors import Infeasible, InvalidInput, PenstockError
from penstock.sharing.quotas import Quota
from penstock.spark.cluster.supervisor import shorten
from penstock.spark.host.communities import OWNER, Caller, Communities
from penstock.spark.host.registry import Registry
from penstock.spark.host.submission import Submission, read_submission

log = logging.getLogger(__name__)

MOST_LOG_BYTES = 1 << 20  # of a topology's log, and as much of the one before
STOP_LIMIT_S = 90.0
MOST_LINES = 10_000  # of a log that are shown
MOST_ROWS = 1_000  # of results
State = Literal["starting", "running", "failed", "ended", "stopped"]


class Running(Protocol):
    """One topology that runs."""

    def wait(self) -> None:
        """Until its streams end or it is stopped; raises what it failed with."""

    def stop(self) -> None:
        """End it between two batches."""

    def status(self) -> Mapping[str, Any]:
        """How it is: processors, results in time, what waits."""

    def results(self, sink: str | None, rows: int) -> Mapping[str, Any]:
        """The newest rows of a sink, as text."""


class Runner(Protocol):
    """What runs topologies."""

    processors: int  # that there may be

    def check(self, submission: Submission, code: Path) -> str | None:
        """Refuse, in a sentence, what cannot run; a file that hangs or ends must not harm us.

        A sentence comes back where a promise, its own or another's, cannot be kept with it. From
        here on it counts as one of the others, until it has `left`.
        """

    def left(self, name: str) -> None:
        """One that was checked is not to run after all."""

    def set_quotas(self, quotas: Mapping[str, Quota]) -> None:
        """What communities have."""

    def common(self, names: Collection[str]) -> list[dict[str, Any]]:
        """What these topologies have in common, and whether it is done once."""

    def start(self, submission: Submission, code: Path, checkpoint: Path) -> Running:
        """Run it from where its checkpoint left off."""


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
        self._communities = Communities(registry.folder / "communities.json")
        runner.set_quotas(self._communities.quotas)
        self._does: dict[str, Callable[[Mapping[str, Any], Caller], dict[str, Any]]] = {
            "submit": self._submit,
            "ps": lambda _, caller: {"topologies": self.list(caller)},
            "explain": self._explain,
            "stop": self._stop,
            "restart": self._restart,
            "logs": self._logs,
            "results": self._results,
            "communities": lambda _, caller: {"communities": self._communities.shown(caller)},
            "community": self._change_community,
            "forget-community": self._forget_community,
        }

    def caller(self, token: str) -> Caller | None:
        """Whose token it is, of the members of communities."""
        return self._communities.caller(token)

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

    def handle(self, request: Mapping[str, Any], caller: Caller = OWNER) -> dict[str, Any]:
        """Do what is asked; refusals are errors of ours."""
        wanted = request.get("do")
        if not isinstance(wanted, str) or wanted not in self._does:
            raise InvalidInput(f"do is {wanted!r}; allowed: {', '.join(self._does)}.")
        return self._does[wanted](request, caller)

    def list(self, caller: Caller = OWNER) -> list[dict[str, Any]]:
        """All topologies that a caller may see, in the order of their names."""
        with self._lock:
            hosted = sorted(self._hosted.items())
        return [_described(one) for _, one in hosted if caller.sees(one.submission.community)]

    def by_community(self) -> dict[str, Any]:
        """Every community with its quota and topologies; last those that belong to none."""
        topologies = self.list()
        found = [*self._communities.shown(), {"name": "", "members": []}]
        for one in found:
            one["topologies"] = [t for t in topologies if t["community"] == one["name"]]
        return {"communities": [one for one in found if one["name"] or one["topologies"]]}

    def end(self) -> None:
        """Stop everything between two batches; it all comes back with the next start."""
        for hosted in list(self._hosted.values()):
            self._end(hosted)

    def _submit(self, request: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        submission = self._allowed(read_submission(request.get("submission")), caller)
        with self._lock:
            taken = self._hosted.get(submission.name)
            if taken is not None:
                seen = caller.sees(taken.submission.community)
                raise InvalidInput(
                    f"name is {submission.name!r}, which is taken"
                    + (f" (it is {taken.state})" if seen else "")
                    + "; give another --name, or stop that one with `penstock stop --forget`."
                )
            self._hosted[submission.name] = _Hosted(submission)  # the name is taken from here on
        try:
            warning = self._runner.check(submission, self._registry.unpack(submission))
            if warning is not None and request.get("strict"):
                raise Infeasible(warning)
            self._registry.keep(submission)
        except BaseException:
            self._runner.left(submission.name)
            with self._lock:
                del self._hosted[submission.name]
            raise
        self._start(submission)
        return {"name": submission.name, "warning": warning}

    def _allowed(self, submission: Submission, caller: Caller) -> Submission:
        """What a caller may submit: in a community that there is, and is the caller's."""
        wanted = submission.community or caller.community
        if not caller.sees(wanted):
            raise InvalidInput(
                f"community is {wanted!r}; this token is for {caller.community!r} alone."
            )
        self._communities.check_known(wanted)
        return replace(submission, community=wanted, member=caller.member, stopped=False)

    def _explain(self, _: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        return {"common": self._runner.common({one["name"] for one in self.list(caller)})}

    def _stop(self, request: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        hosted = self._known(request, caller)
        name = hosted.submission.name
        # First the record: killed in between, it must not come back.
        self._registry.keep(replace(hosted.submission, stopped=True))
        self._end(hosted)
        if request.get("forget"):
            self._registry.forget(name)
            with self._lock:
                del self._hosted[name]
            return {"name": name, "detail": "stopped and forgotten; its checkpoint is still there"}
        hosted.submission = replace(hosted.submission, stopped=True)
        hosted.state, hosted.why = "stopped", ""
        return {"name": name, "detail": "stopped; `penstock restart` goes on where it was"}

    def _restart(self, request: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        hosted = self._known(request, caller)
        self._end(hosted)
        submission = replace(hosted.submission, stopped=False)
        self._registry.keep(submission)
        self._start(submission)
        return {"name": submission.name, "detail": "started again from its checkpoint"}

    def _logs(self, request: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        name = self._known(request, caller).submission.name
        file = self._registry.log_file(name)
        try:
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            lines = []
        return {"name": name, "lines": lines[-MOST_LINES:]}

    def _results(self, request: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        hosted = self._known(request, caller)
        rows, sink = request.get("rows", 20), request.get("sink")
        if not isinstance(rows, int) or not 1 <= rows <= MOST_ROWS:
            raise InvalidInput(f"rows is {rows!r}; give a whole number from 1 to {MOST_ROWS}.")
        if not (sink is None or isinstance(sink, str)):
            raise InvalidInput(f"sink is {sink!r}; give the name of a sink.")
        if hosted.running is None:
            raise InvalidInput(
                f"{hosted.submission.name!r} is {hosted.state} and has no results to show; start "
                "it with `penstock restart`."
            )
        return {"name": hosted.submission.name, **hosted.running.results(sink, rows)}

    def _change_community(self, request: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        _check_owner(caller)
        name, quota = _name(request), request.get("quota", {})
        add, remove = request.get("add", []), request.get("remove", [])
        if not isinstance(quota, dict) or "members" in quota:
            raise InvalidInput("quota must be an object with least, most and weight.")
        for field, names in (("add", add), ("remove", remove)):
            if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
                raise InvalidInput(f"{field} must be a list of members' names.")
        tokens = self._communities.change(name, quota, add, remove, self._runner.processors)
        self._runner.set_quotas(self._communities.quotas)
        return {"name": name, "tokens": tokens}

    def _forget_community(self, request: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        _check_owner(caller)
        name = _name(request)
        with self._lock:
            of_it = [n for n, one in self._hosted.items() if one.submission.community == name]
        if of_it:
            raise InvalidInput(
                f"community {name!r} has {', '.join(sorted(of_it))}; stop these with "
                "`penstock stop --forget` first."
            )
        self._communities.remove(name)
        self._runner.set_quotas(self._communities.quotas)
        return {"name": name}

    def _known(self, request: Mapping[str, Any], caller: Caller) -> _Hosted:
        name = _name(request)
        with self._lock:
            seen = {
                n: one for n, one in self._hosted.items() if caller.sees(one.submission.community)
            }
            if name not in seen:
                known = ", ".join(sorted(seen)) or "none"
                raise InvalidInput(f"no topology is named {name!r}; known: {known}.")
            return seen[name]

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
            hosted.why, hosted.state = str(error), "failed"  # who sees the second has the first
        except BaseException as error:  # noqa: BLE001 - a user's code may raise anything
            hosted.why, hosted.state = f"{type(error).__name__}: {error}", "failed"
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
        shorten(file, MOST_LOG_BYTES)
        with file.open("a", encoding="utf-8") as stream:
            stream.write(f"{datetime.now(tz=UTC).isoformat(timespec='seconds')} {line}\n")


def _check_owner(caller: Caller) -> None:
    if caller != OWNER:
        raise InvalidInput("communities are changed by the user who started the host alone.")


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
        "member": submission.member,
        "weight": submission.weight,
        "max_latency_s": submission.max_latency_s,
        "share": submission.share,
        **status,
    }
