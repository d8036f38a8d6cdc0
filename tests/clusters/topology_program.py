"""A topology of ours under `promise`, as a program of its own: DIRECTORY.

Its rows are generated for a minute; what a session needs for its cluster is in
spark-defaults.conf, and `master` and how long a row takes in topology.json. Prints a line of JSON
for each batch and several times a second which executors there are. Ends when all rows are worked
off.
"""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from clusters.attached_program import tell
from penstock.config import Settings
from penstock.model.sinks import Files
from penstock.model.topology import Topology
from penstock.spark import handles
from penstock.spark.run.elastic import ElasticRun
from penstock.spark.run.place import Place
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant

ROWS = 18_000
WATERMARK_S = 1
# More than three executors can do in the minute of the stream: however slow the machine, the work
# lasts until executors came and were lost. Whoever works off the rest needs less for a row.
ROW_S, LAST_ROW_S = 0.015, 0.001
STREAM = Generator(constant(300.0), keys=40, skew=1.0, seed=11, rows=ROWS, lanes=6, max_rows=1_200)


def topology(directory: Path, row_s: float) -> Topology:
    """Rows as they are, and counts and sums in windows of a second over two chained states."""
    made = Topology("trial", max_latency="10s")
    made.source("rows", STREAM)

    def slow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(row_s * len(batch))
            yield batch

    @made.operator("rows")
    def wide(rows: Any) -> Any:
        return rows.mapInArrow(slow, rows.schema).selectExpr("*", "value * 2 AS doubled")

    @made.operator("wide")
    def by_key(wide: Any) -> Any:
        timed = wide.withWatermark("at", f"{WATERMARK_S} seconds")
        text = """SELECT key, window, count(*) AS n, sum(doubled) AS total FROM {timed}
                  GROUP BY key, window(at, '1 second')"""
        return timed.sparkSession.sql(text, timed=timed)

    made.add(
        "by_window",
        """SELECT window(window, '1 second').start AS since, sum(n) AS n, count(*) AS keys
           FROM by_key GROUP BY window(window, '1 second')""",
        upstream="by_key",
    )
    made.sink("raw", "wide", Files(str(directory / "raw")))
    made.sink("keys", "by_key", Files(str(directory / "keys")))
    made.sink("windows", "by_window", Files(str(directory / "windows")))
    return made


def main(directory: Path) -> None:
    """Run until killed, or until all rows are worked off."""
    asked = json.loads((directory / "topology.json").read_text())
    settings = Settings(
        period_s=2.0, policy="promise", executors_min=1, executors_max=3, slots=1, key_groups=3,
        executor_memory_mb=512, history=str(directory / "history.sqlite"),
        allocation="milp", allocation_tolerance=0.0,
    )  # fmt: skip
    place = Place(asked["master"], directory / "checkpoint", directory / "spark.log")

    def step_line(step: Any) -> None:
        act = step.outcome
        tell(step=step.line(), **({} if act is None else {"act": {
            "done": act.done, "detail": act.detail, "took_s": act.took_s,
        }}))  # fmt: skip

    with ElasticRun(topology(directory, asked["row_s"]), settings, place, on_step=step_line) as run:
        tell(application=run.session.sparkContext.applicationId)
        run.running.after_batch.append(lambda _, batch: tell(batch=batch))
        while not run.wait(0.5):
            active = [one for one in handles.executors(run.session) if one.active]
            tell(executors={one.id: one.host for one in active})
    tell(ended=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
