"""The ramp of the elastic benchmark on Flink, sized by our `ds2`, beside `promise` on Spark.

Two ways. `ds2`: four task managers are there, and the parallelism is set by REST; Flink pays for
the slots it was allotted. `reactive`: task managers are started and ended by the same decisions,
and the job uses all of their slots. Flink writes a row when it is ready and publishes it with the
next checkpoint, so both times are measured: that of a sink which shows rows at once, and that of
results exactly once.
"""

import csv
import sys
import time
import urllib.error
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._elastic_loads import Course, course, within
from benchmarks._flink_cluster import CHECKPOINT_S, SLOTS, FlinkCluster, Vertex
from benchmarks.elastic import AFTER_S, BOUND_S, MOST, OURS, Fed, measure
from penstock.config import Settings
from penstock.model.decision import Limits, ScalingPlan
from penstock.model.observation import ComponentObservation, Observation
from penstock.scaling.policies.ds2 import Ds2
from penstock.scaling.policies.policy import ScalingContext

JOB = Path(__file__).parent / "_flink_stream.py"
LOAD = "ramp"
WAYS = ("ds2", "reactive")
NAME = "look_up"
PERIOD_S = Settings().period_s
WINDOW = 60  # observations that are kept
POLL_S = 0.25
LIMITS = Limits(min_processors=1, max_processors=SLOTS * MOST, max_latency_s=BOUND_S)


@dataclass(frozen=True)
class OnFlink:
    """What one way came to."""

    ready_share: float  # of the rows of the load, within the bound
    published_share: float
    slot_s: float
    lost: int
    twice: int
    changes: int

    def __str__(self) -> str:
        return (
            f"ready in time {self.ready_share:.1%}, published in time {self.published_share:.1%}, "
            f"{self.slot_s:.0f} slot-seconds, {self.changes} changes, lost {self.lost}, "
            f"twice {self.twice}"
        )


def run(python: str, folder: Path) -> Iterator[dict[str, Any]]:
    """Share in time and slot-seconds, Flink's as baseline."""
    whole = course(LOAD)
    found = on_flink(python, folder)
    _say(f"{OURS}: about {whole.profile.duration_s + AFTER_S + 30:.0f} s ...")
    ours = measure(OURS, whole, folder / "ours")
    _say(f"{OURS}: {ours}")
    load = ours.loads[LOAD]
    for way, one in found.items():
        conditions = (
            f"the {LOAD}, {PERIOD_S:g} s a decision; DS2 on Flink ({way}): {one}; a row is "
            f"published with a checkpoint, every {CHECKPOINT_S:g} s; ours, {OURS}: {load}, of "
            f"{SLOTS} slots each"
        )
        yield {
            "name": f"flink/in_time/{way}", "baseline": one.published_share, "ours": load.share,
            "unit": f"share of rows within {BOUND_S:g} s",
            "ratio": round(load.share / max(one.published_share, 1e-9), 3),
            "conditions": conditions,
        }  # fmt: skip
        yield {
            "name": f"flink/cost/{way}", "baseline": round(one.slot_s, 1),
            "ours": round(load.executor_s * SLOTS, 1), "unit": "slot-seconds",
            "ratio": round(one.slot_s / (load.executor_s * SLOTS), 3), "conditions": conditions,
        }  # fmt: skip


def on_flink(python: str, folder: Path) -> dict[str, OnFlink]:
    """What each way came to, with nothing of Spark beside it."""
    whole, found = course(LOAD), dict[str, OnFlink]()
    for way in WAYS:
        _say(f"{way}: about {whole.profile.duration_s + AFTER_S + 30:.0f} s ...")
        found[way] = _on_flink(python, folder / way, whole, reactive=way == "reactive")
        _say(f"{way}: {found[way]}")
    return found


def _on_flink(python: str, folder: Path, whole: Course, reactive: bool) -> OnFlink:
    came, out = folder / "in", folder / "out"
    came.mkdir(parents=True)
    out.mkdir()
    cluster = FlinkCluster(python, folder, reactive)
    try:
        job = cluster.start(JOB, came.as_uri(), out.as_uri())
        if not reactive:
            for _ in range(MOST - 1):
                cluster.add_manager()
        fed = Fed(came, whole.profile)
        sizing = _Sizing(cluster, job, out, fed)
        fed.start()
        until = time.monotonic() + whole.profile.duration_s + AFTER_S
        while time.monotonic() < until:
            sizing.go_on()
            time.sleep(POLL_S)
        fed.join()
    finally:
        cluster.stop()
    return _judged(whole, out, fed, sizing)


@dataclass(frozen=True)
class _Moment:
    """What was counted by then."""

    at_s: float
    sent: int
    published: int
    vertex: Vertex | None


@dataclass
class _Sizing:
    """Our policy over Flink's REST interface."""

    cluster: FlinkCluster
    job: str
    out: Path
    fed: Fed
    window: list[Observation] = field(default_factory=list)
    at_s: list[float] = field(default_factory=list)
    slots: list[float] = field(default_factory=list)
    changes: int = 0
    _files: dict[Path, int] = field(default_factory=dict)
    _before: "_Moment | None" = None

    def __post_init__(self) -> None:
        self.wanted = SLOTS if self.cluster.reactive else 1
        self._due_s = time.time() + PERIOD_S

    def go_on(self) -> None:
        """Count what is paid for, and decide when a period is over."""
        self.at_s.append(time.time())
        self.slots.append(float(self.wanted))
        if time.time() < self._due_s:
            return
        self._due_s += PERIOD_S
        seen = self._observe()
        if seen is None:
            return
        self.window = [*self.window, seen][-WINDOW:]
        current = ScalingPlan({NAME: self.wanted}, self.wanted)
        context = ScalingContext(tuple(self.window), current, LIMITS, sharing="space")
        self._act(Ds2().decide(context).plan.processors)

    def _observe(self) -> Observation | None:
        """None where nothing was measured, as while the job starts again."""
        now_s, sent = time.time(), self.fed.sent
        try:
            vertices = self.cluster.vertices(self.job)
        except (urllib.error.URLError, ConnectionError):
            return None
        newest = next((one for one in vertices if one.name.startswith("Source")), None)
        published = self._published()
        then, now = self._before, _Moment(now_s, sent, published, newest)
        self._before = now
        if newest is None or then is None or then.vertex is None:
            return None
        busy_s = newest.busy_s - then.vertex.busy_s
        period_s = now_s - then.at_s
        rate = (sent - then.sent) / period_s
        backlog = max(0.0, sent - published - rate * 2 * CHECKPOINT_S)
        rows = published - then.published
        # Started anew, it has been busy for less than before: that period says nothing of a row.
        service_s = busy_s / rows if rows > 0 and busy_s > 0 else float("nan")
        part = ComponentObservation(
            NAME, (NAME,), rate, service_s, newest.parallelism, busy_s, backlog_rows=backlog
        )
        return Observation(now_s, period_s, rate, backlog, components=(part,))

    def _published(self) -> int:
        """Rows in files that a checkpoint has published."""
        for file in _files(self.out):
            if file not in self._files:
                self._files[file] = file.read_bytes().count(b"\n")
        return sum(self._files.values())

    def _act(self, processors: int) -> None:
        if self.cluster.reactive:
            processors = SLOTS * -(-processors // SLOTS)
        if processors == self.wanted:
            return
        _say(f"{self.wanted} -> {processors} slots")
        if self.cluster.reactive:
            for _ in range(abs(processors - self.wanted) // SLOTS):
                if processors > self.wanted:
                    self.cluster.add_manager()
                else:
                    self.cluster.remove_manager()
        else:
            self.cluster.resize(self.job, processors)
        self.wanted = processors
        self.changes += 1


def _judged(whole: Course, out: Path, fed: Fed, sizing: _Sizing) -> OnFlink:
    rows = [
        (int(row[0]), float(row[1]), float(row[2]), file.stat().st_ctime)
        for file in _files(out)
        for row in csv.reader(file.read_text(encoding="utf-8").splitlines())
    ]
    vehicle = np.array([row[0] for row in rows], dtype=np.int64)
    arrived_s, ready_s, published_s = (np.array([row[n] for row in rows]) for n in (1, 2, 3))
    (part,) = whole.parts
    here = (arrived_s - fed.began_s >= part.begins_s) & (arrived_s - fed.began_s < part.ends_s)
    due = max(1, fed.sent_between(part.begins_s, part.ends_s))
    different = len(np.unique(vehicle))
    return OnFlink(
        float(((ready_s - arrived_s)[here] <= BOUND_S).sum() / due),
        float(((published_s - arrived_s)[here] <= BOUND_S).sum() / due),
        within(part, tuple(at - fed.began_s for at in sizing.at_s), tuple(sizing.slots)),
        lost=fed.sent - different,
        twice=len(vehicle) - different,
        changes=sizing.changes,
    )


def _files(out: Path) -> list[Path]:
    """Those that are published; others have names that begin with a dot."""
    return [file for file in out.rglob("part-*") if not file.name.startswith(".")]


def _say(text: str) -> None:
    print(f"benchmarks: flink, {text}", file=sys.stderr, flush=True)
