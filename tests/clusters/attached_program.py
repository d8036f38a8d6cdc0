"""A plain stateful query with a controller attached, as a program of its own: DIRECTORY.

Reads `in/`, writes the newest count of each key to `out/`, a file for each batch. What a session
needs for its cluster is in spark-defaults.conf. `options.json` has the options of `attach` and how
long a row takes. Prints a line of JSON for each period of the loop, and several times a second
which executors there are.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import penstock
from penstock.control.step import Step
from penstock.spark import handles

GROUPS = 6
FILES = 24  # of a batch at most: twelve seconds of them
TRIGGER = "4 seconds"  # so that batches of a few rows do not keep executors busy by themselves


def main(directory: Path) -> None:
    """Run until killed, or until the file `end` is there."""
    options = json.loads((directory / "options.json").read_text())
    row_s = options.pop("row_s")

    def slow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(row_s * len(batch))
            yield batch

    def write(batch: DataFrame, batch_id: int) -> None:
        file = directory / "out" / f"{batch_id:06d}.parquet"
        pq.write_table(batch.toArrow(), file.with_suffix(".part"))
        os.replace(file.with_suffix(".part"), file)

    (directory / "out").mkdir(exist_ok=True)
    spark = SparkSession.builder.appName("plain").getOrCreate()
    tell(application=spark.sparkContext.applicationId)
    files = spark.readStream.schema("row long, key long").option("maxFilesPerTrigger", FILES)
    rows = files.parquet(str(directory / "in"))
    counts = (
        rows.repartition(GROUPS).mapInArrow(slow, "row long, key long")
        .groupBy("key").agg(F.count("*").alias("n"), F.sum("row").alias("total"))
    )  # fmt: skip
    query = (
        counts.writeStream.outputMode("update").foreachBatch(write).queryName("plain")
        .trigger(processingTime=TRIGGER)
        .option("checkpointLocation", str(directory / "checkpoint")).start()
    )  # fmt: skip
    options |= {"executors": tuple(options["executors"])}
    controller = penstock.attach(query, history=str(directory / "history.sqlite"), **options)
    told: float = 0.0
    while query.isActive and not (directory / "end").exists():
        tell(executors={one.id: one.host for one in handles.executors(spark) if one.active})
        for step in [step for step in controller.steps if step.at_s > told]:
            told = step.at_s
            tell(**_told(step))
        query.awaitTermination(0.3)
    if (reason := query.exception()) is not None:
        raise SystemExit(f"the query failed: {reason}")
    controller.detach()
    query.stop()
    spark.stop()
    tell(ended=True)


def _told(step: Step) -> dict[str, Any]:
    told: dict[str, Any] = {"step": step.line()}
    if step.observation is not None:
        told["homes"] = {
            f"{name}/{group}": str(node)
            for name, groups in step.observation.key_groups.items()
            for group, node in enumerate(groups.node)
        }
    if step.outcome is not None:
        told["act"] = {"done": step.outcome.done, "detail": step.outcome.detail,
                       "took_s": step.outcome.took_s}  # fmt: skip
    if step.moved is not None:
        cost = step.moved.migration
        told["moved"] = {"done": step.moved.done, "detail": step.moved.detail,
                         "groups": cost.key_groups if cost else 0}  # fmt: skip
    return told


def tell(**what: Any) -> None:
    """One line, whole even where threads print too."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
