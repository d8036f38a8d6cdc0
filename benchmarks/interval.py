"""A batch interval chosen for the bound, beside batches that go back to back, at a low load.

Processor time is that of this program and of all processes below it: driver, source and workers.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks._processor_time import processor_s
from penstock.config import Settings
from penstock.model.sinks import Memory
from penstock.model.topology import Topology
from penstock.spark.run.elastic import ElasticRun
from penstock.spark.run.place import Place
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant

RATE_PER_S, LENGTH_S, SETTLED_S = 100, 45, 20
BOUND_S = 5.0


def run() -> Iterator[dict[str, Any]]:
    """Processor-seconds, batches and results in time, for the same rows."""
    found = {adapted: _measured(adapted) for adapted in (False, True)}
    plain, ours = found[False], found[True]
    conditions = (
        f"{RATE_PER_S} rows/s, bound {BOUND_S:g} s, local[2], {LENGTH_S - SETTLED_S} s after "
        f"{SETTLED_S} s: back to back {plain['batches']:.0f} batches, {plain['in_time']:.3f} in "
        f"time, p95 {plain['p95_s']:.2f} s; interval {ours['batches']:.0f} batches, "
        f"{ours['in_time']:.3f} in time, p95 {ours['p95_s']:.2f} s"
    )
    for name, unit in (("cpu_s", "processor-seconds"), ("batches", "batches")):
        yield {
            "name": f"interval/{name}",
            "baseline": plain[name],
            "ours": ours[name],
            "unit": unit,
            "ratio": plain[name] / ours[name],
            "conditions": conditions,
        }


def _measured(adapted: bool) -> dict[str, float]:
    road = Topology("paced", max_latency=f"{BOUND_S:g}s")
    rows = RATE_PER_S * LENGTH_S
    road.source("rows", Generator(constant(float(RATE_PER_S)), keys=20, rows=rows, lanes=2))
    road.add("timed", lambda rows: rows.withWatermark("at", "1 second"), "rows")
    road.add(
        "counts", "SELECT key, count(*) AS n FROM timed GROUP BY key, window(at, '1 second')",
        "timed",
    )  # fmt: skip
    road.sink("out", "counts", Memory())
    with tempfile.TemporaryDirectory(prefix="penstock-interval-") as folder:
        settings = Settings(
            period_s=2.0, policy="static", key_groups=2, adapt_interval=adapted,
            history=str(Path(folder) / "history.sqlite"),
        )  # fmt: skip
        with ElasticRun(road, settings, Place("local[2]", Path(folder) / "checkpoint")) as run:
            run.wait(SETTLED_S)
            before_s, seen = processor_s(os.getpid()), len(run.observations)
            start_s = time.monotonic()
            run.wait(LENGTH_S - SETTLED_S)
            lasted_s = time.monotonic() - start_s
            cpu_s = (processor_s(os.getpid()) - before_s) / lasted_s * (LENGTH_S - SETTLED_S)
            after = run.observations[seen:]
    latencies = [one.latency for one in after if one.latency is not None]
    count = sum(latency.count for latency in latencies)
    return {
        "cpu_s": cpu_s,
        "batches": float(sum(one.batches.count for one in after if one.batches is not None)),
        "in_time": sum(one.in_time_share * one.count for one in latencies) / count,
        "p95_s": max(latency.p95_s for latency in latencies),
    }


if __name__ == "__main__":
    for row in run():
        print(row)
