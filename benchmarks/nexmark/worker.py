"""One side of the comparison in a process of its own: MODE EVENTS OUT QUERY...; prints JSON.

Everything counts that a user waits for: the session, the first compilation, all batches.
"""

import json
import os
import sys
import time
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from benchmarks.nexmark.programs import start_plain, topology
from penstock.spark.cluster.session import build_session
from penstock.spark.handles.state_stores import ROCKSDB, STATE_STORE

KEY_GROUPS = 8
DEFAULTS, TUNED, OUR_SESSION, OURS = "defaults", "tuned", "our-session", "penstock"
MODES = (DEFAULTS, TUNED, OUR_SESSION, OURS)
# What Spark's own documentation advises for state, and partitions for two slots.
TUNING = {
    STATE_STORE: ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.shuffle.partitions": str(KEY_GROUPS),
}


def main(mode: str, events: Path, out: Path, names: list[str]) -> dict[str, float]:
    """Run the queries until all files are read; what that took."""
    began_s = time.monotonic()
    if mode == OURS:
        made = topology(names, events, out)
        made.run(once=True, checkpoint=out / "checkpoint", key_groups=KEY_GROUPS, master="local[2]")
    else:
        spark = plain_session(mode)
        for query in start_plain(spark, names, events, out):
            query.awaitTermination()
        spark.stop()
    return {
        "seconds": time.monotonic() - began_s, "cpu_s": cpu_s(),
        "state_bytes": sum(f.stat().st_size for f in out.rglob("checkpoint*/**/state/**/*.*")),
    }  # fmt: skip


def plain_session(mode: str) -> SparkSession:
    """With Spark's defaults, with the usual tuning, or with everything that sessions of ours have:
    their settings, their class for local files and their archive of classes."""
    if mode == OUR_SESSION:
        return build_session("plain", key_groups=KEY_GROUPS)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    quiet = {"spark.ui.enabled": "false", "spark.sql.session.timeZone": "UTC"}
    builder = SparkSession.builder.master("local[2]").appName("plain")
    for key, value in {**quiet, **(TUNING if mode == TUNED else {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def cpu_s() -> float:
    """Of this process, of the JVM that it started, and of the workers that the JVM had."""
    gateway = SparkContext._gateway
    assert gateway is not None
    fields = Path(f"/proc/{gateway.proc.pid}/stat").read_text().rpartition(")")[2].split()
    ticks = sum(map(int, fields[11:15]))  # user and system, its own and of children that ended
    return ticks / os.sysconf("SC_CLK_TCK") + time.process_time()


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])))
