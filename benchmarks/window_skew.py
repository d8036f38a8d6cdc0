"""A user's own aggregate over keys of which few have most rows: hot keys in parts, or not.

Spark has no partial aggregation for such an aggregate, so with rows hashed by key one task has all
rows of the most frequent one. Each row waits instead of computing: eight slots on two cores.
"""

import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from penstock import Route, UserAggregate, window_aggregate
from penstock.model.sinks import Memory
from penstock.model.topology import Topology
from penstock.spark import handles
from penstock.spark.run.place import build_session
from penstock.spark.run.together import Pace, RunningTopology
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant

SLOTS = 8
ROW_S = 0.001
ROWS_PER_BATCH = 8_000
BATCHES, UNTIMED = 5, 2  # the first tables are made of what the first batches show
STREAM = Generator(
    constant(1_000.0), keys=1_000, skew=1.5, seed=3, rows=BATCHES * ROWS_PER_BATCH, lanes=2,
    max_rows=ROWS_PER_BATCH,
)  # fmt: skip


def _waited(state: dict[str, Any], rows: Any) -> dict[str, Any]:
    time.sleep(ROW_S * rows.num_rows)
    return {"rows": state["rows"] + rows.num_rows}


COSTLY = UserAggregate(
    columns=["row"],
    state="rows BIGINT",
    returns="BIGINT",
    init=lambda: {"rows": 0},
    update=_waited,
    merge=lambda left, right: {"rows": left["rows"] + right["rows"]},
    result=lambda state: state["rows"],
)


def run() -> Iterator[dict[str, Any]]:
    """The slowest task against the mean, by hash and with hot keys in parts."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        session = build_session(
            "benchmark", f"local[{SLOTS}]", key_groups=2, log_file=Path(folder) / "spark.log"
        )
        try:
            plain = _slowest(session, Route("hash", key="key", partitions=SLOTS))
            parts = Route("frequency-aware", key="key", partitions=SLOTS, period="1ms")
            split = _slowest(session, parts)
        finally:
            session.stop()
    yield {
        "name": "window-user-aggregate-skew", "baseline": round(plain, 2), "ours": round(split, 2),
        "unit": "slowest task / mean task", "ratio": round(plain / split, 2),
        "conditions": f"baseline: rows hashed by key; a user's aggregate that waits "
        f"{1000 * ROW_S:g} ms a row, keys by Zipf 1.5, {SLOTS} tasks on {SLOTS} slots, "
        f"{ROWS_PER_BATCH:,} rows a batch, means over {BATCHES - UNTIMED} batches; windows "
        "checked; ours at most 1.3 is asked for",
    }  # fmt: skip


def _slowest(session: Any, route: Route) -> float:
    made = Topology("skewed", max_latency="60s")
    made.source("rows", STREAM, route=route)

    @made.operator("rows")
    def waited(rows: Any) -> Any:
        return window_aggregate(
            rows.withWatermark("at", "1 second"), by="key", window="8s", slide="2s",
            aggregates={"rows": COSTLY},
        )  # fmt: skip

    made.sink("out", "waited", Memory())
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder,
        RunningTopology(
            made, session, Path(folder) / "checkpoint", Pace(once=True), measured=False
        ) as running,
    ):
        running.wait()
        _check(running.rows("out"), running.epoch_s)
        return _ratio(session, str(running.queries[0].runId))


def _check(found: Any, epoch_s: float) -> None:
    """The rows of each window, all keys together, against the rows that were made."""
    assert STREAM.rows is not None
    at_us = STREAM.batch(0, STREAM.rows, epoch_s).column("at").cast("int64").to_numpy()
    counted: Counter[int] = Counter()
    for row in found:
        counted[round(row.window.start.timestamp() * 1e6)] += row.rows
    for start_us, rows in counted.items():
        inside = (at_us >= start_us) & (at_us < start_us + 8_000_000)
        if rows != int(inside.sum()):
            raise AssertionError(f"a window has {rows} rows instead of {int(inside.sum())}")
    if not counted:
        raise AssertionError("no window was closed")


def _ratio(session: Any, group: str) -> float:
    ratios: dict[int, float] = {}
    for job in handles.jobs_of_group(session, group):
        for stage in handles.stages(session, job.stage_ids):
            routed = stage.tasks == SLOTS and stage.shuffle_records_read >= ROWS_PER_BATCH
            if routed and job.batch_id is not None and job.batch_id >= UNTIMED:
                times = handles.stage_tasks(session, stage.id, stage.attempt).run_time_ms
                ratios[job.batch_id] = float(times.max() / times.mean())
    return float(np.mean(list(ratios.values())))
