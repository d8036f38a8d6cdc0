"""What measuring costs: the same query with and without metrics at its edges and a measurer."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks._sessions import local_session
from penstock.model.sinks import ForeachBatch
from penstock.model.topology import Topology
from penstock.spark.measure.together import SparkMeasurer
from penstock.spark.run.together import Pace, RunningTopology
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant

ROWS = 20_000_000
ROWS_PER_BATCH = 2_000_000
PERIOD_S = 5.0
ROUNDS = 5


def road() -> Topology:
    """A filter, a keyed aggregate in windows, and a sink that drops what it gets."""
    made = Topology("measured", max_latency="60s")
    stream = Generator(constant(1e6), keys=1_000, rows=ROWS, lanes=4, max_rows=ROWS_PER_BATCH)
    made.source("rows", stream)
    made.add("kept", "SELECT * FROM rows WHERE value > 0.2", "rows")

    @made.operator("kept")
    def counts(kept: Any) -> Any:
        timed = kept.withWatermark("at", "1 second")
        text = """SELECT key, window, count(*) AS n, avg(value) AS mean FROM {timed}
                  GROUP BY key, window(at, '1 second')"""
        return timed.sparkSession.sql(text, timed=timed)

    def drop(frame: Any, _batch_id: int) -> None:
        frame.write.format("noop").mode("overwrite").save()

    made.sink("out", "counts", ForeachBatch(drop))
    return made


def run() -> Iterator[dict[str, Any]]:
    """Rows per second of the same work, interleaved."""
    with local_session() as session:

        def batches_s(measured: bool) -> list[float]:
            """How long each full batch took; the first one of a query also starts it."""
            with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
                pace = Pace(once=True)
                checkpoint = Path(folder) / "checkpoint"
                with RunningTopology(road(), session, checkpoint, pace, measured) as running:
                    measurer = SparkMeasurer(running) if measured else None
                    observed_s = time.monotonic()
                    while running.active:
                        if measurer is not None and time.monotonic() - observed_s >= PERIOD_S:
                            measurer.observe()
                            observed_s = time.monotonic()
                        time.sleep(0.05)
                    (query,) = running.queries
                    progress = [p for p in query.recentProgress if p.numInputRows][1:]
                    running.wait()
                return [p.durationMs["triggerExecution"] / 1e3 for p in progress]

        batches_s(True), batches_s(False)
        plain, measured = [], []
        for _ in range(ROUNDS):
            plain += batches_s(False)
            measured += batches_s(True)
        baseline, ours = (ROWS_PER_BATCH / median(side) for side in (plain, measured))
        yield {
            "name": "measurer",
            "baseline": round(baseline),
            "ours": round(ours),
            "unit": "rows/s",
            "ratio": round(ours / baseline, 3),
            "conditions": f"baseline: the same query without metrics at edges and without a "
            f"measurer; {ROWS:,} rows in batches of {ROWS_PER_BATCH:,}, one keyed aggregate, a "
            f"measurer every {PERIOD_S:g} s, local[2], medians over {len(plain)} batches each, "
            "interleaved; at least 0.98 is asked for",
        }
