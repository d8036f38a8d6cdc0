"""One side of the comparison in a process of its own: MODE EVENTS OUT QUERY...; prints seconds.

Everything counts that a user waits for: the session, the first compilation, all batches.
"""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.nexmark.programs import start_plain, topology
from penstock.spark.cluster.session import build_session

KEY_GROUPS = 8
MODES = ("defaults", "tuned", "penstock")


def main(mode: str, events: Path, out: Path, names: list[str]) -> float:
    """Run the queries until all files are read; how long that took."""
    began_s = time.monotonic()
    if mode == "penstock":
        made = topology(names, events, out)
        made.run(once=True, checkpoint=out / "checkpoint", key_groups=KEY_GROUPS)
        return time.monotonic() - began_s
    spark = _defaults() if mode == "defaults" else build_session("plain", key_groups=KEY_GROUPS)
    for query in start_plain(spark, names, events, out):
        query.awaitTermination()
    took_s = time.monotonic() - began_s
    spark.stop()
    return took_s


def _defaults() -> SparkSession:
    quiet = {"spark.ui.enabled": "false", "spark.sql.session.timeZone": "UTC"}
    builder = SparkSession.builder.master("local[2]").appName("plain")
    for key, value in quiet.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


if __name__ == "__main__":
    print(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:]))
