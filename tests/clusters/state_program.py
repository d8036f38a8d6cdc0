"""A query with much state in one key group, which is moved to and fro: DIRECTORY.

Reads `in/`; `state.json` says where the checkpoint is and how often to move. Says when it is ready,
waits for the file `go`, and prints a line of JSON for each move: what it cost.
"""

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from clusters.attached_program import tell
from penstock.control.actions import Move
from penstock.spark import handles
from penstock.spark.act.placement import Placement

LIMIT_S = 300.0


def main(directory: Path) -> None:
    """Move the key group so often, and end."""
    asked = json.loads((directory / "state.json").read_text())
    spark = SparkSession.builder.appName("state").getOrCreate()
    rows = spark.readStream.schema("key long, body binary").option("maxFilesPerTrigger", 1)
    kept = rows.parquet(str(directory / "in")).groupBy("key").agg(F.max("body").alias("body"))
    query = (
        kept.writeStream.outputMode("update").format("noop")
        .option("checkpointLocation", asked["checkpoint"]).start()
    )  # fmt: skip
    placement = Placement(spark, query)
    placement.watch()
    deadline = time.monotonic() + LIMIT_S
    # Until all of the state is there, and in a snapshot, which is written every few seconds.
    while handles.last_batch(query) < asked["batches"] and time.monotonic() < deadline:
        query.awaitTermination(0.2)
    time.sleep(asked["settled_s"])
    (component,) = placement.components
    executors = sorted(handles.active_executor_ids(spark))
    tell(ready=True, executors={one.id: one.host for one in handles.executors(spark)})
    while not (directory / "go").exists() and query.isActive:
        query.awaitTermination(0.2)
    for _ in range(asked["moves"]):
        at = str(placement.observe()[component].node[0])
        to = next(one for one in executors if one != at)
        moved = placement.move([Move(component, 0, to)], LIMIT_S)
        progress = next(p for p in query.recentProgress if p["batchId"] == moved.batch_id)
        load_ms = progress["stateOperators"][0]["customMetrics"]["rocksdbLoadLatencyMs"]
        cost = {"load_s": load_ms / 1e3, "delay_s": moved.cost.delay_s}
        tell(moved={"done": moved.waiting == (), "detail": json.dumps(cost), **cost})
    placement.close()
    query.stop()
    spark.stop()
    tell(ended=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
