"""CPU time of a source's process until it can be asked for rows, by where it finds PySpark.

Run: python -m benchmarks source_start. Both sides have Spark's archives first in their path, as the
JVM starts such a process; each is started once before, so that what Python compiles is kept.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import penstock.spark.cluster
from penstock.spark.cluster.installed import spark_home

STARTS = 7
IMPORTED = (
    "pyspark.sql.streaming.python_streaming_source_runner, penstock.spark.sources.generator_source"
)


def run() -> Iterator[dict[str, Any]]:
    """Seconds of a core, the median of some starts that take turns."""
    ours_path = [str(Path(penstock.spark.cluster.__file__).with_name("python_start"))]
    both = [(_started_s([]), _started_s(ours_path)) for _ in range(STARTS + 1)][1:]
    baseline_s, ours_s = (round(median(side), 3) for side in zip(*both, strict=True))
    yield {
        "name": "source_start", "baseline": baseline_s, "ours": ours_s, "unit": "CPU s",
        "ratio": round(baseline_s / ours_s, 2),
        "conditions": f"median of {STARTS} starts; baseline: PySpark from Spark's archives",
    }  # fmt: skip


def _started_s(more_path: list[str]) -> float:
    archives = map(str, (spark_home() / "python/lib").glob("*.zip"))
    path = os.pathsep.join([*archives, *more_path, *filter(None, sys.path)])
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before_s = _used_s()
    subprocess.run(
        [sys.executable, "-c", f"import {IMPORTED}"], check=True,
        env={**environment, "PYTHONPATH": path},
    )  # fmt: skip
    return _used_s() - before_s


def _used_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
