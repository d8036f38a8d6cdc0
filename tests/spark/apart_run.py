"""Components apart as a program of its own, so that a test can kill it: WHICH DIRECTORY [once].

Prints a line after each batch. With `once` it works off what is left and ends.
"""

import sys
from pathlib import Path
from typing import Any

from pyspark.cloudpickle import register_pickle_by_value

from examples.patterns import Tweets, frequent_patterns
from penstock.config import Settings
from penstock.model.sinks import Files
from penstock.model.topology import Topology
from penstock.spark.run.elastic import ElasticRun
from penstock.spark.run.place import Place
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant

TWEETS = Tweets(items=20, window=300)
TWEET_COUNT = 2_000
THRESHOLD = 12
register_pickle_by_value(sys.modules[Tweets.__module__])  # workers cannot import examples
STREAM = Generator(constant(1_000.0), keys=10, seed=5, rows=6_000, lanes=2, max_rows=500)


def chain(directory: Path) -> Topology:
    """Three queries: a step without state, windows, and windows of these windows."""
    made = Topology("chain", max_latency="20s")
    made.source("rows", STREAM)

    @made.operator("rows", separate=True)
    def wide(rows: Any) -> Any:
        return rows.withColumn("doubled", rows.value * 2).withWatermark("at", "1 second")

    made.add(
        "by_key",
        """SELECT key, window, count(*) AS n, sum(doubled) AS total FROM wide
           GROUP BY key, window(at, '1 second')""",
        upstream="wide",
    )
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


def loop(directory: Path) -> Topology:
    """Frequent patterns: three queries, one of which also reads what it wrote."""
    return frequent_patterns(
        constant(1_000.0), Files(str(directory / "patterns")), tweets=TWEETS, rows=TWEET_COUNT,
        threshold=THRESHOLD, max_rows=250, max_latency="20s",
    )  # fmt: skip


def main(which: str, directory: Path, once: bool) -> None:
    """Run until killed, or until all rows are worked off."""
    settings = Settings(
        period_s=2.0,
        policy="static",
        allocation="milp",
        key_groups=2,
        history=str(directory / "history.sqlite"),
    )
    place = Place(
        "local[4]", directory / "checkpoint", directory / "spark.log", once=once, apart=True
    )
    topology = {"chain": chain, "loop": loop}[which](directory)
    with ElasticRun(topology, settings, place) as run:
        run.running.after_batch.append(lambda _, batch: print("batch", batch, flush=True))
        if not run.wait(150):
            raise SystemExit("the stream was not worked off in time")
    print("finished", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:] == ["once"])
