"""CPU time until a cluster has run its first query: without the class archive, and with it.

Run: python -m benchmarks start_up. Each side is a program of its own with a cluster of its own.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks._sessions import embedded_session
from penstock.errors import Unavailable
from penstock.spark.cluster import class_archive

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def run() -> Iterator[dict[str, Any]]:
    """Seconds of a core for the driver, the cluster and an executor together."""
    if not class_archive.usable():
        raise Unavailable("There is no class archive; run `penstock prepare` first.")
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as empty:
        baseline_s, ours_s = _cpu_s({"XDG_CACHE_HOME": empty}), _cpu_s({})
    yield {
        "name": "start_up", "baseline": baseline_s, "ours": ours_s, "unit": "CPU s",
        "ratio": round(baseline_s / ours_s, 2),
        "conditions": "JVMs of driver, cluster and an executor, until a first small query is done; "
        "baseline: without the archive of penstock prepare",
    }  # fmt: skip


def _cpu_s(variables: dict[str, str]) -> float:
    done = subprocess.run(
        [sys.executable, "-m", __name__], env={**os.environ, **variables}, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    return float(done.stdout.split()[-1])


def _used_s() -> float:
    """Of all JVMs that were started since, below this process, and of those that they started."""
    parents, used_s = dict[int, int](), dict[int, float]()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        name, _, rest = entry.read_text().rpartition(")")
        fields = rest.split()
        pid = int(entry.parent.name)
        parents[pid] = int(fields[1])
        # Also of children that are gone: Spark's scripts start a JVM that prints a command line.
        used_s[pid] = sum(map(int, fields[11:15])) / TICKS_PER_S if "java" in name else 0.0
    return sum(seconds for pid, seconds in used_s.items() if _descends(pid, parents))


def _descends(pid: int, parents: dict[int, int]) -> bool:
    while pid in parents and pid != os.getpid():
        pid = parents[pid]
    return pid == os.getpid()


if __name__ == "__main__":
    with embedded_session() as session:
        session.range(1000, numPartitions=2).selectExpr("id % 7 AS k").groupBy(
            "k"
        ).count().collect()
        print(round(_used_s(), 1))
