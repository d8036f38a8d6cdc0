"""Fig. 14 with all layers on the embedded cluster: inputs, lanes, routes, windows, executors.

The traffic query of the paper over cabs that are growing files: each comes, bursts and goes, its
lane is admission's, the route follows from the query, and executors are scaled by what admission
foresees. One way at a time, since each has the cluster to itself, over the same arrivals.
"""

import json
import math
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from examples.traffic import AGGREGATES, AREAS, Areas
from experiments.admission.on_spark.strategies import SAY
from penstock.config import Settings
from penstock.control.step import Step
from penstock.model.observation import Ints
from penstock.model.route import Route
from penstock.model.sinks import ForeachBatch
from penstock.model.sources import Admission, Streams
from penstock.model.topology import Topology
from penstock.spark.run.elastic import ElasticRun
from penstock.spark.run.place import Place
from penstock.spark.windows.operator import window_aggregate

MOST, BOUND_S, PERIOD_S = 4, 5.0, 2.0
# That a report keeps a processor busy, and no core: at the peak, half of what four executors have,
# or even they could not keep the bound.
ROW_S = 0.0025
WHOLE_S, QUICK_WHOLE_S = 180.0, 60.0
SEED_CABS, LATE_CABS = 8, 16
CALM_PER_S, BURST_PER_S = 15.0, 32.0  # reports of a cab
TICK_S = 0.25
START_S = 15.0  # until a run has its first executor and batch, about
SCHEMA = "at BIGINT, longitude DOUBLE, latitude DOUBLE, speed DOUBLE"


@dataclass(frozen=True)
class Course:
    """When things happen, as shares of the run."""

    duration_s: float
    join: float = 0.2
    burst: tuple[float, float] = (0.35, 0.6)
    leave: float = 0.7

    def rates_per_s(self, at_s: float) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Reports a second of each cab."""
        share = at_s / self.duration_s
        high = self.burst[0] <= share < self.burst[1]
        rates = np.full(SEED_CABS + LATE_CABS, BURST_PER_S if high else CALM_PER_S)
        if not self.join <= share < self.leave:
            rates[SEED_CABS:] = 0.0
        return rates

    def declared(self, before_s: float = 0.0) -> str:
        """Meta-data as an operator of the fleet would write it: when its cabs are busy.

        The first cabs joined so long before the course begins.
        """
        length_s = self.duration_s * (self.burst[1] - self.burst[0])
        text = ""
        for cab in range(SEED_CABS + LATE_CABS):
            joined_s = -before_s if cab < SEED_CABS else self.duration_s * self.join
            phase_s = (joined_s - self.duration_s * self.burst[0]) % self.duration_s
            text += (
                f'[streams."cab{cab}.json"]\nleast_rate = {CALM_PER_S}\n'
                f"greatest_rate = {BURST_PER_S}\nperiod = {self.duration_s}\n"
                f'phase = {phase_s}\nburst = {length_s}\ntransition = "jump"\n'
            )
        return text


@dataclass(frozen=True)
class Way:
    """A way to run it: how streams are assigned, who scales, and from how many executors."""

    strategy: str
    policy: str
    executors: int


WAYS = {
    "drf-m": Way("drf-m", "admission-led", 1),
    "ard": Way("ard", "admission-led", 1),
    f"static {MOST}": Way("drf-m", "static", MOST),
}


@dataclass
class Outcome:
    """What one way came to; samples are those of the loop's periods."""

    in_time_share: float = math.nan
    executor_s: float = 0.0
    executors: list[int] = field(default_factory=list)
    lanes: list[int] = field(default_factory=list)
    redirected: int = 0


class Waiting:
    """Areas of reports, each of which takes its time."""

    def __init__(self, row_s: float) -> None:
        self._row_s, self._areas = row_s, Areas(1_000.0)

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            time.sleep(self._row_s * batch.num_rows)
            yield from self._areas([batch])


def query(folder: Path, way: Way, declared: Path) -> Topology:
    """The traffic query over files; its route follows from the query."""
    city = Topology("city", max_latency=BOUND_S)
    admission = Admission(strategy=way.strategy, period=PERIOD_S, lanes_max=2 * MOST, horizon=3)
    cabs = Streams(
        files=str(folder), pattern="*.json", schema=SCHEMA, declared=str(declared),
        discovery_period="0.5s", admission=admission,
    )  # fmt: skip
    city.source("cabs", cabs, route=Route("auto", partitions=MOST))
    city.add(
        "reports",
        "SELECT timestamp_micros(at) AS time, longitude, latitude, speed FROM cabs",
        upstream="cabs",
    )

    @city.operator("reports")
    def areas(reports: Any) -> Any:
        return reports.mapInArrow(Waiting(ROW_S), AREAS)

    @city.operator("areas")
    def queues(areas: Any) -> Any:
        timed = areas.withWatermark("time", "2 seconds")
        return window_aggregate(
            timed, by="area", window="6s", slide="1s", aggregates=AGGREGATES, buckets=MOST
        )

    city.sink("out", "queues", ForeachBatch(lambda batch, number: batch.count() and None))
    return city


def all_ways(seed: int, quick: bool) -> dict[str, Outcome]:
    """One after the other, by name."""
    course, found = Course(QUICK_WHOLE_S if quick else WHOLE_S), {}
    for name, way in WAYS.items():
        SAY(f"traffic query, {name}, seed {seed}: about {course.duration_s + START_S:.0f} s")
        found[name] = run_way(way, course, seed)
    return found


def run_way(way: Way, course: Course, seed: int) -> Outcome:
    """The whole course by one way."""
    with tempfile.TemporaryDirectory(prefix="penstock-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        (folder / "in").mkdir()
        declared = folder / "streams.toml"
        declared.write_text("", encoding="utf-8")
        settings = Settings(
            policy=way.policy, executors_min=way.executors, executors_max=MOST, slots=1,
            period_s=PERIOD_S, key_groups=MOST, executor_memory_mb=512, cooldown_in_s=10.0,
            cooldown_out_s=4.0, scale_down_window_s=None, catch_up_s=None,
            history=str(folder / "history.sqlite"),
        )  # fmt: skip
        place = Place("embedded", folder / "checkpoint", folder / "spark.log")
        seen: list[Step] = []
        warm = threading.Event()

        def step(made: Step) -> None:
            if warm.is_set():
                seen.append(made)
            elif _is_warm(made):
                warm.set()

        with ElasticRun(query(folder / "in", way, declared), settings, place, step) as run:
            stop = threading.Event()
            cabs = Cabs(folder / "in", course, seed, declared)
            writer = threading.Thread(target=cabs.write, args=(warm, stop))
            writer.start()
            try:
                while not warm.is_set() and not run.wait(PERIOD_S):
                    pass
                run.wait(course.duration_s + BOUND_S)
            finally:
                stop.set()
                writer.join()
    return _outcome(seen)


def _is_warm(step: Step) -> bool:
    """Whether batches are through in time: what came while code was cold is no part of it."""
    seen = step.observation
    if seen is None or seen.latency is None or seen.batches is None:
        return False
    return seen.latency.count > 0 and seen.latency.max_s < BOUND_S / 2


def _outcome(seen: list[Step]) -> Outcome:
    found = Outcome()
    count = in_time = 0.0
    before: int | None = None
    for step in seen:
        observed = step.observation
        if observed is None:
            continue
        found.executors.append(len(observed.nodes))
        found.executor_s += len(observed.nodes) * observed.period_s
        if observed.latency is not None and observed.latency.count:
            count += observed.latency.count
            in_time += observed.latency.count * observed.latency.in_time_share
        for source in observed.sources:
            before = source.redirected if before is None else before
            found.lanes.append(len(source.lanes))
            found.redirected = source.redirected - before
    found.in_time_share = in_time / count if count else math.nan
    return found


@dataclass
class Cabs:
    """Files that grow as the course has it; reports of a tick appear together."""

    folder: Path
    course: Course
    seed: int
    declared: Path
    _row: int = 0

    def write(self, warm: threading.Event, stop: threading.Event) -> None:
        """A few reports of each first cab until all is warm, then the course."""
        due = np.zeros(SEED_CABS + LATE_CABS)
        while not warm.is_set() and not stop.wait(TICK_S):
            self._append(np.where(np.arange(len(due)) < SEED_CABS, 1, 0))
        began_s = last_s = time.time()
        # Phases are counted from when a stream joins, which the first ones did before.
        self.declared.write_text(self.course.declared(began_s - self._joined_s()), "utf-8")
        while (now_s := time.time()) - began_s < self.course.duration_s and not stop.wait(TICK_S):
            due += self.course.rates_per_s(now_s - began_s) * (now_s - last_s)
            last_s = now_s
            whole = np.floor(due).astype(np.int64)
            self._append(whole)
            due -= whole

    def _joined_s(self) -> float:
        return min((file.stat().st_ctime for file in self.folder.iterdir()), default=time.time())

    def _append(self, counts: Ints) -> None:
        places = np.random.default_rng(self.seed).zipf(1.6, 4_096) % 200
        for cab in np.flatnonzero(counts).tolist():
            lines = []
            for _ in range(int(counts[cab])):
                place = int(places[self._row % len(places)])
                report = {
                    "at": round(time.time() * 1e6), "speed": float(20 + self._row % 60),
                    "longitude": -122.5 + 0.0005 * (place * 7919 % 211),
                    "latitude": 37.7 + 0.0005 * (place * 104_729 % 197),
                }  # fmt: skip
                lines.append(json.dumps(report))
                self._row += 1
            with (self.folder / f"cab{cab}.json").open("a", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
