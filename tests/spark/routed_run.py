"""A routed topology as a program that a test can kill: DIRECTORY MASTER ROWS [once].

A new table for every batch: hot keys are split otherwise each time, and rows of one key meet again
only in the state behind. Prints a line after each batch.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from penstock.config import Settings
from penstock.model.route import Route
from penstock.model.sinks import Files
from penstock.model.topology import Topology
from penstock.spark.run.elastic import ElasticRun
from penstock.spark.run.place import Place
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant

ROWS_PER_BATCH = 900
ROUTE = Route("frequency-aware", key="key", partitions=3, period="1ms")
SCHEMA = "row BIGINT, key BIGINT, value DOUBLE, at TIMESTAMP, task INT"


def with_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The number of the task a row's work was done in."""
    context = TaskContext.get()
    assert context is not None
    for batch in batches:
        task = pa.array([context.partitionId()] * batch.num_rows, pa.int32())
        yield batch.append_column("task", task)


def stream(rows: int) -> Generator:
    """So many rows, a few batches a second."""
    return Generator(
        constant(3_000.0), keys=40, skew=1.5, seed=5, rows=rows, lanes=2, max_rows=ROWS_PER_BATCH
    )


def topology(directory: Path, rows: int) -> Topology:
    """Rows with their tasks, and counts for each key over all batches so far."""
    made = Topology("routed", max_latency="10s")
    made.source("rows", stream(rows), route=ROUTE)

    @made.operator("rows")
    def worked(rows: Any) -> Any:
        return rows.mapInArrow(with_task, SCHEMA)

    @made.operator("worked")
    def by_key(worked: Any) -> Any:
        timed = worked.withWatermark("at", "1 second")
        text = """SELECT key, window.start AS since, count(*) AS n, sum(row) AS total FROM {timed}
                  GROUP BY key, window(at, '1 second')"""
        return timed.sparkSession.sql(text, timed=timed)

    made.sink("raw", "worked", Files(str(directory / "raw")))
    made.sink("keys", "by_key", Files(str(directory / "keys")))
    return made


def main(directory: Path, master: str, rows: int, once: bool) -> None:
    """Run until killed, or until all rows are worked off."""
    settings = Settings(
        period_s=2.0, policy="static", executors_min=2, executors_max=2, slots=1, key_groups=2,
        executor_memory_mb=512, history=str(directory / "history.sqlite"),
    )  # fmt: skip
    place = Place(master, directory / "checkpoint", directory / "spark.log", once=once)
    with ElasticRun(topology(directory, rows), settings, place) as run:
        run.running.after_batch.append(lambda _, batch: print("batch", batch, flush=True))
        if not run.wait(200):
            raise SystemExit("the stream was not worked off in time")
    print("finished", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:] == ["once"])
