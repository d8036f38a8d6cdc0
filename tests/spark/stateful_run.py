"""A stateful topology as a program of its own, so that a test can kill it: DIRECTORY MASTER [once].

Prints a line after each batch. With `once` it works off what is left and ends.
"""

import sys
from pathlib import Path
from typing import Any

from penstock.config import Settings
from penstock.model.sinks import Files
from penstock.model.topology import Topology
from penstock.spark.run.elastic import ElasticRun
from penstock.spark.run.place import Place
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant

ROWS = 24_000
WATERMARK_S = 1
STREAM = Generator(constant(3_000.0), keys=40, skew=1.0, seed=11, rows=ROWS, lanes=2, max_rows=900)


def topology(directory: Path) -> Topology:
    """Rows as they are, and counts and sums in windows of a second over two chained states."""
    made = Topology("killed", max_latency="10s")
    made.source("rows", STREAM)

    @made.operator("rows")
    def wide(rows: Any) -> Any:
        return rows.withColumn("doubled", rows.value * 2)

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


def main(directory: Path, master: str, once: bool) -> None:
    """Run until killed, or until all rows are worked off."""
    settings = Settings(
        period_s=2.0, policy="static", executors_min=2, executors_max=2, slots=1, key_groups=2,
        executor_memory_mb=512, history=str(directory / "history.sqlite"),
        allocation="milp", allocation_tolerance=0.0,  # so that key groups move all the time
    )  # fmt: skip
    place = Place(master, directory / "checkpoint", directory / "spark.log", once=once)
    with ElasticRun(topology(directory), settings, place) as run:
        run.running.after_batch.append(lambda _, batch: print("batch", batch, flush=True))
        if not run.wait(200):
            raise SystemExit("the stream was not worked off in time")
    print("finished", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:] == ["once"])
