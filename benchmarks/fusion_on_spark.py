"""Fused against unfused on the embedded cluster: bytes shuffled and time of a batch, same rows."""

import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from benchmarks._sessions import SETTINGS, embedded_session
from examples.linear_road import Windows, linear_road
from penstock.model.plan_document import Group
from penstock.model.sinks import Memory
from penstock.model.topology import Topology
from penstock.spark import handles
from penstock.spark.compile.fused import PlanChoice
from penstock.spark.run.together import Pace, RunningTopology
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant

# From a load where a batch is mostly what Spark does whatever the rows, to one where it is mostly
# rows and their state: what fusing saves depends on it.
RATES_PER_S = (2_000, 6_000, 20_000)
BATCH_S = 3
REPORT_EVERY_S = 30  # a vehicle of the linear-road benchmark reports its position this often
BATCHES = 6  # the first of a run is not counted
WARM_UPS = 4  # at each load; Spark compiles for as long as a load is new to it
PAIRS = 10  # of one run each, fused and not; what a machine does from minute to minute hits both
DRAWS = 2_000  # of pairs, with repetition: how far the ratio depends on which pairs there were
EPOCH_S = 1_700_000_000.0  # the same for all runs, so that their rows can be compared
ROAD = (Group(("speeds", "segments", "tolls", "accidents"), ("direction", "segment")),)
CHAIN = (Group(("by_vehicle", "by_segment"), ("segment",)),)
KINDS = ("road", "chain")
CASES = (*KINDS, *(f"{kind}-{rate}" for kind in KINDS for rate in RATES_PER_S))


@dataclass(frozen=True)
class Measured:
    """One run: its rows, what it shuffled, and how long its full batches took."""

    rows: Counter[Any]
    shuffled_bytes: int
    batches_s: tuple[float, ...]


Pair = tuple[Measured, Measured]  # unfused and fused


def stream(rate_per_s: int, batches: int = BATCHES) -> Generator:
    """Reports of as many vehicles as send so many."""
    return Generator(
        constant(float(rate_per_s)), keys=rate_per_s * REPORT_EVERY_S, lanes=2,
        rows=rate_per_s * BATCH_S * batches, max_rows=rate_per_s * BATCH_S,
    )  # fmt: skip


def road(rate_per_s: int, batches: int = BATCHES) -> Topology:
    """One linear-road gadget."""
    reports = stream(rate_per_s, batches)
    return linear_road(reports, Memory(), Memory(), windows=Windows(), max_latency="60s")


def chain(rate_per_s: int, batches: int = BATCHES) -> Topology:
    """Two keyed aggregations, one after the other."""
    made = Topology("chained", max_latency="60s")
    made.source("reports", stream(rate_per_s, batches))
    made.add(
        "positions",
        "SELECT key AS vehicle, key % 200 AS segment, value, at FROM reports",
        "reports",
    )

    @made.operator("positions")
    def by_vehicle(positions: Any) -> Any:
        timed = positions.withWatermark("at", "1 second")
        text = """SELECT vehicle, segment, window, count(*) AS n, max(value) AS value FROM {timed}
                  GROUP BY vehicle, segment, window(at, '1 second')"""
        return timed.sparkSession.sql(text, timed=timed)

    made.add(
        "by_segment",
        """SELECT segment, window(window, '1 second').start AS since, sum(n) AS n,
                  max(value) AS value
           FROM by_vehicle GROUP BY segment, window(window, '1 second')""",
        "by_vehicle",
    )
    made.sink("out", "by_segment", Memory())
    return made


def run(case: str = "") -> Iterator[dict[str, Any]]:
    """Both workloads at each rate, or one of them, or that at one rate."""
    workloads = {
        "road": ("linear road", road, ROAD, 0.8),
        "chain": ("two chained aggregations", chain, CHAIN, 0.85),
    }
    with embedded_session() as session:
        for kind, (name, made, groups, bound) in workloads.items():
            for rate_per_s in RATES_PER_S:
                if case not in ("", kind, f"{kind}-{rate_per_s}"):
                    continue
                pairs = _pairs(made(rate_per_s), session, groups)
                found = {frozenset(one.rows.items()) for pair in pairs for one in pair}
                conditions = (
                    f"baseline: the same topology without fusion, in turns; {rate_per_s:,} rows/s "
                    f"in batches of {BATCH_S} s, {SETTINGS.key_groups} key groups, 1 executor of "
                    f"{SETTINGS.slots} slots, {PAIRS} pairs of runs; rows equal: {len(found) == 1}"
                )
                yield from _lines(f"{name}, {rate_per_s} rows/s", pairs, conditions, bound)


def _pairs(topology: Topology, session: SparkSession, groups: tuple[Group, ...]) -> list[Pair]:
    """Runs next to each other in time, each kind first in every other pair."""
    pairs = []
    for number in range(WARM_UPS + PAIRS):
        kinds: tuple[tuple[Group, ...], ...] = ((), groups)
        first, second = kinds if number % 2 else kinds[::-1]
        pair = measure(topology, session, first), measure(topology, session, second)
        pairs.append(pair if number % 2 else pair[::-1])
    return pairs[WARM_UPS:]


def _lines(name: str, pairs: list[Pair], conditions: str, bound: float) -> Iterator[dict[str, Any]]:
    seconds = np.array([[mean(one.batches_s) for one in pair] for pair in pairs])
    plain, fused = seconds.mean(axis=0)
    draws = np.random.default_rng(1).integers(len(pairs), size=(DRAWS, len(pairs)))
    drawn = seconds[draws].mean(axis=1)
    low, high = np.percentile(drawn[:, 1] / drawn[:, 0], [2.5, 97.5])
    yield {
        "name": f"fusion: batch time, {name}",
        "baseline": round(plain, 3),
        "ours": round(fused, 3),
        "unit": "s",
        "ratio": round(plain / fused, 3),
        "conditions": f"{conditions}; wanted: at most {bound} of the baseline, "
        f"is {fused / plain:.2f} (95 %: {low:.2f} to {high:.2f})",
    }
    unfused, ours = np.median([[one.shuffled_bytes for one in pair] for pair in pairs], axis=0)
    yield {
        "name": f"fusion: bytes shuffled, {name}",
        "baseline": round(unfused / 1e6, 2),
        "ours": round(ours / 1e6, 2),
        "unit": "MB",
        "ratio": round(unfused / ours, 3),
        "conditions": f"{conditions}; {ours / unfused:.2f} of the baseline",
    }


def measure(topology: Topology, session: SparkSession, groups: tuple[Group, ...]) -> Measured:
    """One run from an empty checkpoint to the end of its rows."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        checkpoint = Path(folder) / "checkpoint"
        (checkpoint / "penstock").mkdir(parents=True, mode=0o700)
        (checkpoint / "penstock/epoch.json").write_text(json.dumps({"epoch_s": EPOCH_S}))
        choice = PlanChoice(groups)
        with RunningTopology(topology, session, checkpoint, Pace(once=True), choice=choice) as ran:
            ran.wait()
            (query,) = ran.queries
            full = [p for p in query.recentProgress if p.numInputRows][1:]
            shuffled = _shuffled_bytes(session, str(query.runId))
            rows = Counter(
                (sink.name, *(round(v, 6) if isinstance(v, float) else v for v in row))
                for sink in topology.sinks
                for row in ran.rows(sink.name)
            )
    times_s = tuple(p.durationMs["triggerExecution"] / 1e3 for p in full)
    return Measured(rows, shuffled, times_s)


def _shuffled_bytes(session: SparkSession, run_id: str) -> int:
    jobs = handles.jobs_of_group(session, run_id)
    ids = tuple(sorted({stage for job in jobs for stage in job.stage_ids}))
    return sum(
        int(handles.stage_tasks(session, stage.id, stage.attempt).shuffle_written_bytes.sum())
        for stage in handles.stages(session, ids)
    )
