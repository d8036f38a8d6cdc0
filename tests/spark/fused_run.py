"""A fused topology as a program of its own, so that a test can kill it: DIRECTORY PLAN BATCHES.

PLAN is that of `penstock run --plan`, with --apply, or `-` for the checkpoint's. Prints a line
after each batch; after BATCHES of them it ends in good order, or with 0 when all is worked off.
"""

import sys
import threading
from pathlib import Path

from penstock.config import Settings
from penstock.model.sinks import Files
from penstock.model.topology import Topology
from penstock.spark.run.elastic import ElasticRun
from penstock.spark.run.place import Place
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant

ROWS = 8_000
STREAM = Generator(constant(2_000.0), keys=60, skew=1.0, seed=3, rows=ROWS, lanes=2, max_rows=1_000)


def topology(directory: Path) -> Topology:
    """Counts by key and bucket, and of those by bucket, in windows of a second."""
    made = Topology("fused", max_latency="30s")
    made.source("rows", STREAM)

    @made.operator("rows")
    def by_key(rows):  # type: ignore[no-untyped-def]
        timed = rows.selectExpr("key", "key % 7 AS bucket", "at").withWatermark("at", "1 second")
        text = """SELECT key, bucket, window, count(*) AS n FROM {timed}
                  GROUP BY key, bucket, window(at, '1 second')"""
        return timed.sparkSession.sql(text, timed=timed)

    made.add(
        "by_bucket",
        """SELECT bucket, window(window, '1 second').start AS since, sum(n) AS n, count(*) AS keys
           FROM by_key GROUP BY bucket, window(window, '1 second')""",
        "by_key",
    )
    made.sink("buckets", "by_bucket", Files(str(directory / "buckets")))
    return made


def run(made: Topology, directory: Path, plan: str, batches: int) -> None:
    """Run until killed, until so many batches are done, or until all rows are worked off."""
    settings = Settings(
        period_s=1.0, policy="static", executors_min=1, executors_max=1, key_groups=3,
        history=str(directory / "history.sqlite"),
    )  # fmt: skip
    place = Place(
        "local[2]", directory / "checkpoint", directory / "spark.log", once=batches == 0,
        plan=None if plan == "-" else plan, apply=True,
    )  # fmt: skip
    enough = threading.Event()
    seen: list[int] = []

    def note(_: str, batch: int) -> None:
        seen.append(batch)
        print("batch", batch, flush=True)
        if len(seen) == batches:
            enough.set()

    with ElasticRun(made, settings, place) as running:
        running.running.after_batch.append(note)
        built = running.running.built
        fused = [" + ".join(sorted(f.members)) for query in built.queries for f in query.fused]
        print("fused", *fused, flush=True)
        if batches:
            enough.wait(200)
            running.running.raise_failure()
        elif not running.wait(200):
            raise SystemExit("the stream was not worked off in time")
        running.finish()
    print("finished", flush=True)


if __name__ == "__main__":
    here = Path(sys.argv[1])
    run(topology(here), here, sys.argv[2], int(sys.argv[3]))
