"""What moving a key group of 50 MB costs the batch it happens in, against stop and restart."""

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from penstock.control.actions import Move
from penstock.spark import handles
from penstock.spark.act.executors import executor_settings
from penstock.spark.act.placement import Moved, Placement
from penstock.spark.cluster.embedded import EmbeddedCluster
from penstock.spark.run.place import build_session
from penstock.spark.sources.generator_source import FORMAT
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import steps

GROUP_BYTES = 50e6
KEYS = 70_000
HASHES = 15  # of 128 characters each, to a row of state
FILL_S, FILL_RATE, QUIET_RATE = 6, 15_000.0, 100.0
MOVES = 5
QUIET_BATCHES = 6
LIMIT_S = 300.0


def run() -> Iterator[dict[str, Any]]:
    """Rows with a ratio above 1 where ours is better."""
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder,
        EmbeddedCluster(slots=2, memory_mb=2 * 900) as cluster,
    ):
        extra = {**cluster.settings, **executor_settings(2, 2), "spark.executor.memory": "900m"}
        session = build_session(
            "migration", cluster.master_url, key_groups=2, quick_start=True,
            log_file=Path(folder) / "spark.log", extra=extra,
        )  # fmt: skip
        try:
            yield from _measured(session, Path(folder) / "checkpoint")
        finally:
            session.stop()


def _measured(session: SparkSession, checkpoint: Path) -> Iterator[dict[str, Any]]:
    frame = _frame(session, time.time())
    query = _start(frame, checkpoint)
    placement = Placement(session, query)
    placement.watch()
    try:
        _until(lambda: _smallest_group(placement) >= GROUP_BYTES)
        _wait_for_quiet_batches(query)
        # A key group that grew to its size in seconds has no snapshot of it yet; wait for one.
        filled = int(query.lastProgress.batchId)
        _until(lambda: _oldest_snapshot(checkpoint) >= filled)
        moved = [_move(session, placement, query) for _ in range(MOVES)]
    finally:
        placement.close()
    usual_s = _usual_s(query)
    restarts = []
    for _ in range(2):
        began_s = time.monotonic()
        query.stop()
        query = _start(frame, checkpoint)
        _until(lambda now=query: now.lastProgress is not None)  # type: ignore[misc]
        restarts.append(time.monotonic() - began_s - usual_s)
        _wait_for_quiet_batches(query)
    query.stop()
    delays = [one.cost.delay_s for one in moved]
    loads = [one.cost.load_s for one in moved]
    size = float(np.mean([one.cost.state_bytes for one in moved]))
    yield {
        "name": "key group move, delay of its batch",
        "baseline": float(np.median(restarts)),
        "ours": float(np.median(delays)),
        "unit": "s",
        "ratio": float(np.median(restarts) / max(np.median(delays), 1e-3)),
        "conditions": (
            f"baseline: stop and restart of the query, to the end of its first batch, less a usual "
            f"batch; embedded cluster, 2 executors; key group of {size / 1e6:.0f} MB; moves "
            f"delayed their batches by {_shown(delays)} s, of which tasks loaded {_shown(loads)} "
            f"s; a usual batch takes {usual_s:.2f} s; at most 1 s more: "
            f"{all(delay <= 1.0 for delay in delays)}; query never restarted"
        ),
    }


def _shown(values: list[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


def _frame(session: SparkSession, epoch_s: float) -> DataFrame:
    """A row of 2 kB for each key: many in the first seconds, then a few changes."""
    rate = steps([(FILL_S, FILL_RATE), (86_400, QUIET_RATE)])
    stream = Generator(rate, keys=KEYS, seed=5, lanes=1, max_rows=20_000)
    options = {"generator": stream.to_json(), "epoch_s": repr(epoch_s), "stream": "rows"}
    rows = session.readStream.format(FORMAT).options(**options).load()
    parts = [F.sha2(F.concat(F.col("row"), F.lit(f"-{n}")), 512) for n in range(HASHES)]
    wide = rows.select("key", F.concat(*parts).alias("text"))
    return wide.groupBy("key").agg(F.max("text").alias("text"))


def _start(frame: DataFrame, checkpoint: Path) -> StreamingQuery:
    writer = frame.writeStream.outputMode("update").format("noop")
    return writer.option("checkpointLocation", str(checkpoint)).start()


def _smallest_group(placement: Placement) -> float:
    sizes = [groups.state_bytes.min() for groups in placement.observe().values()]
    return float(min(sizes, default=0.0))


def _oldest_snapshot(checkpoint: Path) -> int:
    """The version that all key groups have a snapshot of, or a newer one; -1 without."""
    newest = [
        max((int(f.name.split("_")[0].removesuffix(".zip")) for f in folder.glob("*.zip")),
            default=-1)
        for folder in (checkpoint / "state/0" / str(group) for group in range(2))
    ]  # fmt: skip
    return min(newest)


def _wait_for_quiet_batches(query: StreamingQuery) -> None:
    """Some batches in which nothing happens."""
    progress = query.lastProgress
    until = (progress.batchId if progress else 0) + QUIET_BATCHES
    _until(lambda: query.lastProgress is not None and query.lastProgress.batchId >= until)


def _move(session: SparkSession, placement: Placement, query: StreamingQuery) -> Moved:
    (name, groups), *_ = placement.observe().items()
    home = str(groups.node[0])
    other = next(one for one in sorted(handles.active_executor_ids(session)) if one != home)
    moved = placement.move([Move(name, 0, other)])
    _wait_for_quiet_batches(query)
    return moved


def _usual_s(query: StreamingQuery) -> float:
    took = [p.durationMs["triggerExecution"] / 1e3 for p in query.recentProgress]
    return float(np.median(took[-3 * QUIET_BATCHES :]))


def _until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {LIMIT_S:g} s")
        time.sleep(0.1)


if __name__ == "__main__":
    for row in run():
        print(json.dumps(row))
