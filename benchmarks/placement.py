"""Slowest-to-mean task time of a stateful query before and after its key groups are placed.

The query begins on one executor and is given two more. Spark leaves all state where it first
landed, so they idle; then the key groups are placed by the loop's own allocation.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from experiments.allocation.on_spark.placement import Trial, slowest_to_mean
from penstock.control.actions import SetExecutors
from penstock.control.allocating import Allocating, AllocationRules
from penstock.spark.sources.generator_source import FORMAT
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant

EXECUTORS, GROUPS = 3, 9
ROUNDS, BATCHES = 6, 3
STREAM = Generator(constant(1_500.0), keys=300, skew=0.8, seed=5, lanes=1, max_rows=3_000)


def run() -> Iterator[dict[str, Any]]:
    """Rows with a ratio above 1 where ours is better."""
    with Trial(_start, EXECUTORS, GROUPS, first=1) as trial:
        trial.actuator.act(SetExecutors(EXECUTORS))
        still = Allocating(AllocationRules("milp", tolerance=1e9))
        before = [trial.round(still, BATCHES) for _ in range(4)][1:]
        placing = Allocating(AllocationRules("milp", tolerance=5.0))
        rounds = [trial.round(placing, BATCHES) for _ in range(ROUNDS)]
        after = [trial.round(still, BATCHES) for _ in range(3)]
    moves = [len(record.moves) if record else 0 for _, record, _ in rounds]
    old, new = (
        float(np.mean([slowest_to_mean(seen) for seen, _, _ in part])) for part in (before, after)
    )
    took = [
        float(np.mean([o.batches.mean_duration_s for o, _, _ in part if o.batches is not None]))
        for part in (before, after)
    ]
    yield {
        "name": "slowest-to-mean task time of executors",
        "baseline": old,
        "ours": new,
        "unit": "ratio",
        "ratio": old / new,
        "conditions": (
            f"one run, {GROUPS} key groups under skew, query begun on 1 executor and given "
            f"{EXECUTORS}; baseline: before any move; moves in {ROUNDS} rounds: {moves}; batches "
            f"took {took[0]:.2f} s before and {took[1]:.2f} s after"
        ),
    }


def _start(session: SparkSession, folder: Path) -> StreamingQuery:
    session.conf.set("spark.sql.streaming.statefulOperator.useStrictDistribution", "false")
    options = {"generator": STREAM.to_json(), "epoch_s": repr(time.time()), "stream": "rows"}
    rows = session.readStream.format(FORMAT).options(**options).load()
    costly = "sum(length(sha2(repeat(CAST(value AS STRING), 400), 512))) AS spent"
    # Behind the shuffle, so that the work of a row is done where its key group is.
    grouped = rows.repartition(GROUPS, "key").groupBy("key")
    summed = grouped.agg(F.expr(costly))
    writer = summed.writeStream.outputMode("update").format("noop")
    return writer.option("checkpointLocation", str(folder / "checkpoint")).start()


if __name__ == "__main__":
    for row in run():
        print(json.dumps(row))
