"""A plain PySpark script with and without `penstock.attach`, beside Spark's own dynamic allocation
and fixed sizes, in one stream that is warm and then sees a ramp, two bursts and a real curve.

Everything is measured from outside: executors by what the cluster's master counts, latency from
when a row's file appeared to when Spark's file sink committed the batch with it. The first seconds,
in which every mode is cold, belong to none of the loads. Each mode also runs in the simulator,
which takes its costs from the attached run: how far it is off says what the arena is worth.

Run: make bench-elastic; `python -m benchmarks elastic:ramp` for one of the loads, `elastic:goal`
for four executors and `promise` alone, `elastic:instead` with dynamic allocation beside them (what
the README shows), and with `short` half a minute of load and two of the modes, which shows that it
works and nothing else.
"""

import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks._elastic_loads import ALL, SHORT, Course, Part, course, within
from benchmarks._elastic_simulated import calibrated, in_part, simulated
from benchmarks._sink_latencies import Delivered, delivered
from penstock.model.number_text import share_text
from penstock.spark.act.executors import executor_settings
from penstock.spark.cluster.embedded import EmbeddedCluster
from penstock.spark.cluster.session import QUICK_START
from penstock.spark.run.user_session import write_configuration
from penstock.workloads.profiles import RateProfile

EXAMPLES = Path(__file__).parent.parent / "examples"
SLOTS, MOST, MEMORY_MB = 2, 4, 768
BOUND_S = 5.0
FILE_EVERY_S = 0.25
AFTER_S = 15.0  # for what waits when the load ends
POLL_S = 0.25
START_S = 20.0  # until a script has its first executor, about
GOAL = "goal"  # all loads, but only what the goal compares: ours, and four executors
INSTEAD = "instead"  # all loads: ours, and what people use instead; nothing is simulated
CASES = (*ALL, GOAL, INSTEAD, SHORT)
OURS = "attached, promise"
KEPT = Path("runs/elastic")  # histories of the newest run
COMMON = {
    "spark.executor.cores": str(SLOTS),
    "spark.executor.memory": f"{MEMORY_MB}m",
    "spark.executor.extraJavaOptions": QUICK_START,
    "spark.driver.extraJavaOptions": QUICK_START,
    "spark.ui.enabled": "false",
    "spark.decommission.enabled": "true",
}

_DRA = "spark.dynamicAllocation."


@dataclass(frozen=True)
class Mode:
    """A script, what Spark is told, what the environment tells Penstock, and its simulation."""

    script: str
    settings: dict[str, str]
    policy: str = ""
    executors: int | None = None  # where they are fixed


MODES: dict[str, Mode] = {
    "static-1": Mode("plain_stream.py", {"spark.cores.max": str(SLOTS)}, executors=1),
    "static-4": Mode("plain_stream.py", {"spark.cores.max": str(SLOTS * MOST)}, executors=MOST),
    "dynamic allocation": Mode(
        "plain_stream.py",
        {
            f"{_DRA}enabled": "true", f"{_DRA}shuffleTracking.enabled": "true",
            f"{_DRA}minExecutors": "1", f"{_DRA}maxExecutors": str(MOST),
            "spark.cores.max": str(SLOTS * MOST),
        },
    ),
    OURS: Mode("attached_stream.py", executor_settings(1, MOST, SLOTS), "promise"),
    "attached, drs": Mode("attached_stream.py", executor_settings(1, MOST, SLOTS), "drs"),
}  # fmt: skip

SOME_MODES = {
    GOAL: ("static-4", OURS),
    INSTEAD: ("static-4", "dynamic allocation", OURS),
}


@dataclass(frozen=True)
class Load:
    """What one mode made of one load."""

    share: float  # of the rows that arrived in it, those that never came out included
    worst_s: float
    executor_s: float

    def __str__(self) -> str:
        return (
            f"{share_text(self.share)} in time, worst {self.worst_s:.1f} s, "
            f"{self.executor_s:.0f} executor-seconds"
        )


@dataclass(frozen=True)
class Measured:
    """What one mode came to."""

    loads: dict[str, Load]
    lost: int
    twice: int
    history: Path | None = field(default=None)

    def __str__(self) -> str:
        loads = "; ".join(f"{name}: {load}" for name, load in self.loads.items())
        return f"{loads}; lost {self.lost}, twice {self.twice}"


def run(case: str = "") -> Iterator[dict[str, Any]]:
    """For each load and mode: results in time and executor-seconds, and the simulator's error."""
    whole, found = course("" if case in SOME_MODES else case), dict[str, Measured]()
    modes = SOME_MODES.get(case, ("static-1", OURS) if case == SHORT else tuple(MODES))
    with tempfile.TemporaryDirectory(prefix="penstock-elastic-") as folder:
        for number, mode in enumerate(modes, 1):
            about_s = whole.profile.duration_s + AFTER_S + START_S
            _say(f"{number} of {len(modes)}, {mode}: about {about_s:.0f} s ...")
            found[mode] = measure(mode, whole, Path(folder) / str(number))
            _say(f"{mode}: {found[mode]}{_kept(mode, found[mode])}")
        history = found[OURS].history
        assert history is not None
        for part in whole.parts:
            yield from _compared(part.name, found)
            if case not in (SHORT, INSTEAD):
                yield from _simulated(part, found, history, whole)


def _kept(mode: str, measured: Measured) -> str:
    """Why it decided as it did can be asked later: `penstock why --history` what is kept."""
    if measured.history is None:
        return ""
    KEPT.mkdir(parents=True, exist_ok=True)
    kept = KEPT / f"{MODES[mode].policy}.sqlite"
    # Not the file alone: what was written last may stand in a log beside it.
    with closing(sqlite3.connect(measured.history)) as ran, closing(sqlite3.connect(kept)) as copy:
        ran.backup(copy)
    return f"; its decisions: {kept}"


def _compared(load: str, found: dict[str, Measured]) -> Iterator[dict[str, Any]]:
    ours = found[OURS].loads[load]
    conditions = "; ".join(f"{mode}: {one.loads[load]}" for mode, one in found.items())
    for mode, measured in found.items():
        one = measured.loads[load]
        if mode != OURS:
            yield {
                "name": f"attach_in_time/{load}/{mode}", "baseline": one.share,
                "ours": ours.share, "unit": f"share of rows within {BOUND_S:g} s",
                "ratio": ours.share / max(one.share, 1e-9), "conditions": conditions,
            }  # fmt: skip
            yield {
                "name": f"attach_cost/{load}/{mode}", "baseline": one.executor_s,
                "ours": ours.executor_s, "unit": "executor-seconds",
                "ratio": one.executor_s / ours.executor_s, "conditions": conditions,
            }  # fmt: skip


def _simulated(
    part: Part, found: dict[str, Measured], history: Path, whole: Course
) -> Iterator[dict[str, Any]]:
    scenario = calibrated(history, whole)
    for mode, measured in found.items():
        given, load = MODES[mode], measured.loads[part.name]
        if given.executors is None and not given.policy:
            continue  # the simulator has no dynamic allocation
        result = simulated(scenario, given.policy, given.executors)
        share, executor_s = in_part(result, part)
        yield {
            "name": f"simulated/{part.name}/{mode}", "baseline": load.share, "ours": share,
            "unit": f"share of rows within {BOUND_S:g} s, on Spark and in the simulator",
            "ratio": share / max(load.share, 1e-9),
            "conditions": f"off by {100 * (share - load.share):+.1f} points; executor-seconds "
            f"{executor_s:.0f} instead of {load.executor_s:.0f}",
        }  # fmt: skip


def _say(text: str) -> None:
    print(f"benchmarks: elastic, {text}", file=sys.stderr, flush=True)


def measure(mode: str, whole: Course, where: Path) -> Measured:
    given = MODES[mode]
    for name in ("in", "conf"):
        (where / name).mkdir(mode=0o700, parents=True)
    with EmbeddedCluster(SLOTS * MOST, MEMORY_MB * MOST) as cluster:
        # Executors of every mode start warm, as on the cluster of `penstock cluster env`.
        settings = {**COMMON, **cluster.settings, **given.settings}
        kept = {key: value for key, value in settings.items() if value != ""}
        write_configuration(where / "conf", kept, cluster.directory)
        duration_s = whole.profile.duration_s + AFTER_S
        program = _start(given, where, duration_s)
        _until_executors(cluster, program)
        fed = Fed(where / "in", whole.profile)
        fed.start()
        at_s, executors = _watch(cluster, program, duration_s)
        fed.join()
    rows = delivered(where / "out")
    seen_s = tuple(at - fed.began_s for at in at_s)
    return Measured(
        {p.name: _load(p, rows, fed, within(p, seen_s, executors)) for p in whole.parts},
        lost=fed.sent - len(set(rows.vehicle.tolist())),
        twice=len(rows.vehicle) - len(set(rows.vehicle.tolist())),
        history=where / "history.sqlite" if given.policy else None,
    )


def _load(part: Part, rows: Delivered, fed: "Fed", executor_s: float) -> Load:
    arrived_s = rows.arrived_s - fed.began_s
    here = (arrived_s >= part.begins_s) & (arrived_s < part.ends_s)
    waited_s = (rows.committed_s - rows.arrived_s)[here]
    due = max(1, fed.sent_between(part.begins_s, part.ends_s))
    kept = float((waited_s <= BOUND_S).sum() / due)
    return Load(kept, float(waited_s.max(initial=0.0)), executor_s)


def _start(mode: Mode, where: Path, duration_s: float) -> "subprocess.Popen[bytes]":
    command = [sys.executable, str(EXAMPLES / mode.script)]
    command += [str(where / name) for name in ("in", "out", "checkpoint")]
    environment = {
        **os.environ,
        "SPARK_CONF_DIR": str(where / "conf"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PENSTOCK_HISTORY": str(where / "history.sqlite"),
        **({"PENSTOCK_POLICY": mode.policy} if mode.policy else {}),
    }
    log = (where / "log").open("wb")
    return subprocess.Popen(
        [*command, str(duration_s + 60)], env=environment, stdout=log, stderr=log, cwd=where
    )


def _until_executors(cluster: EmbeddedCluster, program: "subprocess.Popen[bytes]") -> None:
    """The clock starts when executors are there, as it would for a stream that runs."""
    deadline = time.monotonic() + 120
    while cluster.status().slots_used == 0:
        if time.monotonic() > deadline or program.poll() is not None:
            raise RuntimeError("the script did not get an executor")
        time.sleep(POLL_S)


class Fed(threading.Thread):
    """Writes files of rows as the load says, each row with the time its file appeared."""

    def __init__(self, where: Path, rate: RateProfile) -> None:
        super().__init__(daemon=True)
        self._where, self._rate = where, rate
        self._files: list[tuple[float, int]] = []  # when, and how many rows
        self.began_s = time.time()

    @property
    def sent(self) -> int:
        return sum(rows for _, rows in self._files)

    def sent_between(self, begins_s: float, ends_s: float) -> int:
        """Rows of files that appeared then, in seconds after the first."""
        since = [(at_s - self.began_s, rows) for at_s, rows in self._files]
        return sum(rows for at_s, rows in since if begins_s <= at_s < ends_s)

    def run(self) -> None:
        sent, self.began_s = 0, time.time()
        while sent < int(self._rate.rows):
            time.sleep(FILE_EVERY_S)
            elapsed_s = time.time() - self.began_s
            due = min(int(self._rate.rows_by(elapsed_s)), int(self._rate.rows))
            if due > sent:
                at = time.time()
                text = "".join(f'{{"vehicle": {row}, "at": {at}}}\n' for row in range(sent, due))
                staged = self._where / f".{sent}"
                staged.write_text(text, encoding="utf-8")
                staged.rename(self._where / f"{sent:09}.json")
                self._files.append((at, due - sent))
                sent = due


def _watch(
    cluster: EmbeddedCluster, program: "subprocess.Popen[bytes]", duration_s: float
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """How many executors there were from when on, until the load ends, and with it the script."""
    at_s, executors = list[float](), list[float]()
    end = time.monotonic() + duration_s
    while time.monotonic() < end:
        if program.poll() is not None:
            raise RuntimeError("the script ended before the load did")
        at_s.append(time.time())
        executors.append(cluster.status().slots_used / SLOTS)
        time.sleep(POLL_S)
    program.terminate()
    program.wait(60)
    return tuple(at_s), tuple(executors)
