"""Strategies side by side on Spark: one query, one source for each, the same arrivals.

A source is the real one, over generated streams whose rates follow a workload. A lane takes at most
its capacity in a batch, so what its streams bring beyond that stays queued at them. All sources
are in every batch, so what disturbs one disturbs all.
"""

import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from experiments.admission.workloads.streams import PERIOD_S, StreamWorkload
from penstock.forecast.metadata import NAMES, TRANSITIONS, StreamMetadata
from penstock.model.sinks import ForeachBatch
from penstock.model.sources import CAPACITY_BEFORE_MEASURED, Admission, Streams
from penstock.model.topology import Topology
from penstock.spark.run.together import Pace, RunningTopology
from penstock.spark.sources.stream_meta import SPANS
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import steps

TIME_SCALE = 5.0  # so many times faster than the paper's periods of 10 s
SHORT_PERIOD_S = PERIOD_S / TIME_SCALE
BATCH_S = SHORT_PERIOD_S
QUIET_S = 8.0  # streams join before their first row: starting is no part of the race
NEVER_S = 1e6
SETTLING_PERIODS = 4  # not counted: nothing is known of the rates yet


@dataclass
class Lap:
    """What one source went through; samples are taken after each batch."""

    queued_rows: list[int] = field(default_factory=list)
    latest_lane_s: list[float] = field(default_factory=list)  # longest queue over capacity
    lanes: list[int] = field(default_factory=list)
    redirected: list[int] = field(default_factory=list)  # since the start
    latency_s: list[tuple[int, float]] = field(default_factory=list)  # rows, mean to the batch end

    @property
    def mean_latency_s(self) -> float:
        """From arrival to the end of the batch, over rows."""
        rows = sum(count for count, _ in self.latency_s)
        return sum(count * mean for count, mean in self.latency_s) / max(rows, 1)


@dataclass(frozen=True)
class Race:
    """The laps by name, over so many periods; batches that took longer than they should."""

    laps: Mapping[str, Lap]
    periods: float
    late_batches: int
    batches: int

    def redirected_per_period(self, name: str) -> float:
        """Streams that changed lanes in a period, on average."""
        counts = self.laps[name].redirected
        return (counts[-1] - counts[0]) / self.periods if counts else float("nan")


def run_race(
    session: Any,
    workload: StreamWorkload,
    entrants: Mapping[str, Admission],
    capacity_per_s: float | None = None,
    frozen: Sequence[str] = (),
) -> Race:
    """All entrants over the whole workload; takes as long as the workload does, scaled.

    Queues are judged by the capacity, which is that of each entrant's lanes unless it is given.
    The lanes of frozen entrants stay as they are when counting begins.
    """
    with tempfile.TemporaryDirectory(prefix="penstock-race-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        declared = folder / "streams.toml"
        topology = _topology(workload, entrants, declared)
        with RunningTopology(topology, session, folder / "run", Pace(BATCH_S)) as running:
            watch = _Watch(running, entrants, capacity_per_s)
            running.after_batch.append(watch.sample)
            joined_s = time.time() - running.epoch_s
            declared.write_text(_declared(workload.metadata, joined_s), encoding="utf-8")
            ends_s = QUIET_S + workload.rates_per_s.shape[1] * SHORT_PERIOD_S
            to_freeze = list(frozen)
            while time.time() - running.epoch_s < ends_s:
                running.raise_failure()
                watch.collect()
                while to_freeze and watch.counting:
                    running.streams.limit(source=to_freeze.pop(), period_s=NEVER_S)
                time.sleep(1.0)
            return watch.race(workload)


def _topology(
    workload: StreamWorkload, entrants: Mapping[str, Admission], declared: Path
) -> Topology:
    made = Topology("race", max_latency="60s")
    generators = {
        _name(number): Generator(_profile(rates), keys=10, seed=number)
        for number, rates in enumerate(workload.rates_per_s)
    }
    for name, admission in entrants.items():
        made.source(
            name,
            Streams(
                generators=generators, declared=str(declared), discover=False, admission=admission
            ),
        )
    shown = " UNION ALL ".join(f"SELECT value FROM {name}" for name in entrants)
    made.add("together", shown, list(entrants))
    made.sink("nowhere", "together", ForeachBatch(_drop))
    return made


def _drop(frame: Any, _batch_id: int) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _profile(rates_per_s: Sequence[float]) -> Any:
    held = [(SHORT_PERIOD_S, float(rate)) for rate in rates_per_s]
    return steps([(QUIET_S, 0.0), *held])


def _name(number: int) -> str:
    return f"s{number}"


def _declared(metadata: StreamMetadata, joined_s: float) -> str:
    """Meta-data as a TOML file; a phase is counted from when the stream joins, not from its start.

    Values that are NaN are not known and left out.
    """
    early = (QUIET_S - joined_s) / SHORT_PERIOD_S
    columns = [getattr(metadata, column.name) for column in fields(metadata)]
    lines = []
    for row in range(len(metadata)):
        lines.append(f"[streams.{_name(row)}]")
        known = {n: c[row] for n, c in zip(NAMES, columns, strict=True)}
        code = int(known.pop("transition"))
        if code:
            lines.append(f'transition = "{TRANSITIONS[code]}"')
        if not np.isnan(known["phase"]):
            known["phase"] = (known["phase"] - early) % metadata.cycle[row]
        known |= {n: known[n] * SHORT_PERIOD_S for n in SPANS}
        known["slope"] /= SHORT_PERIOD_S
        lines += [f"{n} = {float(value)!r}" for n, value in known.items() if not np.isnan(value)]
    return "\n".join(lines) + "\n"


class _Watch:
    """Samples statuses after each batch, and latencies from the query's progress."""

    def __init__(
        self,
        running: RunningTopology,
        entrants: Mapping[str, Admission],
        capacity_per_s: float | None,
    ) -> None:
        self._running = running
        self._capacity = {
            n: capacity_per_s or a.lane_capacity or CAPACITY_BEFORE_MEASURED
            for n, a in entrants.items()
        }
        self._laps = {name: Lap() for name in entrants}
        self._counted = QUIET_S + SETTLING_PERIODS * SHORT_PERIOD_S
        self._seen: set[int] = set()
        self._late = 0

    @property
    def counting(self) -> bool:
        """Whether the first periods are over."""
        return time.time() - self._running.epoch_s >= self._counted

    def sample(self, _query: str, _batch_id: int) -> None:
        """Called by the query's thread."""
        if not self.counting:
            return
        for name, lap in self._laps.items():
            (status,) = self._running.sources.statuses(name)
            queues = [lane["queue_rows"] for lane in status["lanes"]]
            lap.queued_rows.append(int(status["waiting_rows"]))
            lap.latest_lane_s.append(max(queues, default=0) / self._capacity[name])
            lap.lanes.append(len(queues))
            lap.redirected.append(int(status["redirected"]))

    def collect(self) -> None:
        """Latencies of the batches reported since the last call."""
        for progress in self._running.queries[0].recentProgress:
            began_s = _seconds(progress.timestamp)
            if progress.batchId in self._seen or (began_s - self._running.epoch_s < self._counted):
                continue
            self._seen.add(progress.batchId)
            took_s = progress.durationMs["triggerExecution"] / 1e3
            self._late += took_s > BATCH_S
            for source in progress.sources:
                if source.endOffset == source.startOffset:
                    continue
                offset = json.loads(source.endOffset)
                lap = self._laps[offset["source"]]
                for rows, first_s, last_s in offset["arrived"]:
                    latency_s = began_s + took_s - (first_s + last_s) / 2
                    lap.latency_s.append((int(rows), latency_s))

    def race(self, workload: StreamWorkload) -> Race:
        """What was seen."""
        self.collect()
        periods = workload.rates_per_s.shape[1] - SETTLING_PERIODS
        return Race(self._laps, float(periods), self._late, len(self._seen))


def _seconds(stamp: str) -> float:
    return float(np.datetime64(stamp.rstrip("Z"), "ms").astype(np.int64)) / 1e3
