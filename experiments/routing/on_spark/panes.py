"""Panes on a running topology: which task gets how many rows of each second.

A generated stream that began long ago is read batch by batch as fast as it goes; panes follow the
times of its rows, so what a task is dealt does not depend on the machine.
"""

import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from experiments.routing.trials.balance import JUMP, JUMP_PROBABILITY, NODES
from penstock.model.observation import Floats
from penstock.model.route import Route
from penstock.model.sinks import ForeachBatch
from penstock.model.topology import Topology
from penstock.spark.run.together import Pace, RunningTopology
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import steps

LEAST_PER_S, MOST_PER_S = 1_800.0, 2_200.0  # a tenth of the paper's
SHOWN = """
    SELECT CAST(floor(unix_micros(at) / 1000000) AS BIGINT) AS second,
           spark_partition_id() AS task
    FROM rows
"""


def pane_loads(
    session: SparkSession, method: str, seed: int, seconds: int, limit_s: float = 600.0
) -> Floats:
    """Rows of each second that each of the tasks got."""
    rng = np.random.default_rng(seed)
    jumps = np.where(rng.random(seconds) < JUMP_PROBABILITY, JUMP, 1)
    rates = np.floor(rng.uniform(LEAST_PER_S, MOST_PER_S, seconds) * jumps)
    profile = steps([(1.0, float(rate)) for rate in rates])
    stream = Generator(profile, rows=int(rates.sum()), max_rows=int(rates.mean()), lanes=1)
    counts: dict[tuple[int, int], int] = {}

    def count(batch: Any, _number: int) -> None:
        for row in batch.groupBy("second", "task").count().collect():
            at = (row.second, row.task)
            counts[at] = counts.get(at, 0) + row["count"]

    made = Topology("panes", max_latency="60s")
    route = Route(method, partitions=NODES, time="at", window="60s", slide="1s")
    made.source("rows", stream, route=route)
    made.add("shown", SHOWN, upstream="rows")
    made.sink("out", "shown", ForeachBatch(count))
    with tempfile.TemporaryDirectory(prefix="penstock-", ignore_cleanup_errors=True) as folder:
        began_s = _begun_before(Path(folder) / "run", seconds + 60)
        with RunningTopology(made, session, Path(folder) / "run", Pace(once=True)) as running:
            if not running.wait(limit_s):
                raise RuntimeError("the stream was not read in time")
    loads = np.zeros((seconds, NODES))
    for (second, task), rows in counts.items():
        loads[min(max(second - int(began_s), 0), seconds - 1), task] += rows
    return loads


def _begun_before(checkpoint: Path, ago_s: float) -> float:
    """A run that began so long ago that all its rows are there; at a whole second."""
    epoch_s = float(int(time.time() - ago_s))
    (checkpoint / "penstock").mkdir(parents=True)
    (checkpoint / "penstock" / "epoch.json").write_text(json.dumps({"epoch_s": epoch_s}))
    return epoch_s
