"""What the batches of a stream notice of a new executor that starts cold, and of a warm one.

Run: python -m benchmarks warm_start. The query has a Python step and state, and batches back to
back; a second executor of two slots is asked for once they are of one length. In turns, each in a
cluster of its own.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from penstock.control.actions import SetExecutors
from penstock.spark import handles
from penstock.spark.act.executors import SparkExecutors, executor_settings
from penstock.spark.cluster.embedded import EmbeddedCluster
from penstock.spark.cluster.java_classes import PLUGINS
from penstock.spark.run.place import build_session

ROUNDS, SLOTS = 3, 2
BEFORE, AFTER = 25, 10  # batches until it is asked for, and since it has had tasks
LIMIT_S = 120.0
COLD = {PLUGINS: ""}


@dataclass(frozen=True)
class Noticed:
    """What came of one start."""

    usual_s: float  # of a batch, before
    longest_s: float  # since it was asked for
    until_tasks_s: float


def run() -> Iterator[dict[str, Any]]:
    """By how much the longest batch since then is longer than a usual one."""
    cold, warm = list[Noticed](), list[Noticed]()
    for number in range(ROUNDS):
        for quick in (True, False) if number % 2 else (False, True):
            (warm if quick else cold).append(_noticed({} if quick else COLD))
    longer = [np.median([one.longest_s - one.usual_s for one in each]) for each in (cold, warm)]
    yield {
        "name": "warm start, by how much the longest batch is longer", "unit": "s",
        "baseline": round(longer[0], 2), "ours": round(longer[1], 2),
        "ratio": round(longer[0] / max(longer[1], 0.01), 2),
        "conditions": f"baseline: without the plugin; medians of {ROUNDS}; a usual batch, the "
        f"longest, seconds until the new executor has tasks: cold {_shown(cold)}; warm "
        f"{_shown(warm)}",
    }  # fmt: skip


def _shown(all_of_them: list[Noticed]) -> str:
    return ", ".join(
        f"{one.usual_s:.2f} {one.longest_s:.2f} {one.until_tasks_s:.1f}" for one in all_of_them
    )


def _noticed(more: dict[str, str]) -> Noticed:
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder,
        EmbeddedCluster(2 * SLOTS) as cluster,
    ):
        extra = {**cluster.settings, **executor_settings(1, 2, SLOTS), **more}
        session = build_session(
            "warm-start", cluster.master_url, key_groups=2 * SLOTS, quick_start=True,
            log_file=Path(folder) / "spark.log", extra=extra | {"spark.executor.memory": "768m"},
        )  # fmt: skip
        try:
            return _watched(session, _started(session, Path(folder) / "checkpoint"))
        finally:
            session.stop()


def _started(session: SparkSession, checkpoint: Path) -> StreamingQuery:
    rows = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 2_000)
    rows = rows.option("numPartitions", 2 * SLOTS).load()
    through = rows.selectExpr("value").mapInArrow(lambda batches: batches, "value BIGINT")
    counted = through.selectExpr("value % 100 AS key").groupBy("key").count()
    writer = counted.writeStream.outputMode("update").format("noop")
    return writer.option("checkpointLocation", str(checkpoint)).start()


def _watched(session: SparkSession, query: StreamingQuery) -> Noticed:
    _until(lambda: _batches(query) >= BEFORE)
    began, began_s = _batches(query), time.monotonic()
    SparkExecutors(session).act(SetExecutors(2))
    _until(lambda: all(one.busy_ms for one in handles.executors(session)))
    until_tasks_s, had = time.monotonic() - began_s, _batches(query)
    _until(lambda: _batches(query) >= had + AFTER)
    took = {int(p.batchId): p.durationMs["triggerExecution"] / 1000 for p in query.recentProgress}
    query.stop()
    usual = [took[batch] for batch in took if began - 10 <= batch < began]
    since = [took[batch] for batch in took if batch >= began]
    return Noticed(float(np.median(usual)), max(since), until_tasks_s)


def _batches(query: StreamingQuery) -> int:
    newest = query.lastProgress
    return -1 if newest is None else int(newest.batchId)


def _until(condition: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"not within {LIMIT_S:g} s")
        time.sleep(0.05)


if __name__ == "__main__":
    for found in run():
        print(found)
