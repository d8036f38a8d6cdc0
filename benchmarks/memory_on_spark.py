"""Memory of a run on Spark over thousands of periods: the driver's Python, its JVM, its files.

`PENSTOCK_SOAK_MINUTES` says for how long (20); the loop decides twice a second, so that an hour has
as many periods as ten hours of a usual run.
"""

import gc
import math
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from penstock import Files, Generator, Topology, constant
from penstock.config import Settings
from penstock.spark.run.elastic import ElasticRun
from penstock.spark.run.place import Place

MINUTES = float(os.environ.get("PENSTOCK_SOAK_MINUTES", "20"))
POINTS = 10
PERIOD_S = 0.5
ROWS_PER_S = 200.0
KEYS = 50


@dataclass(frozen=True)
class Point:
    """What is held at a moment."""

    at_s: float
    periods: int
    resident_bytes: int
    heap_bytes: int
    threads: int
    files: int  # open
    checkpoint_files: int


def speeds(out: Path) -> Topology:
    """Windows over a steady stream; their state is bounded by the watermark."""
    made = Topology("soak", max_latency="30s")
    made.source("reports", Generator(constant(ROWS_PER_S), keys=KEYS))
    made.add("timely", lambda rows: rows.withWatermark("at", "1 second"), upstream="reports")
    made.add(
        "counts",
        """SELECT key, window.start AS since, count(*) AS n FROM timely
           GROUP BY key, window(at, '2 seconds')""",
        upstream="timely",
    )
    made.sink("out", "counts", Files(str(out)))
    return made


def looked_at(run: ElasticRun, began_s: float, checkpoint: Path, periods: int) -> Point:
    """After both collectors have been asked to collect."""
    gc.collect()
    jvm: Any = run.session.sparkContext._jvm
    jvm.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    status = Path("/proc/self/status").read_text(encoding="ascii")
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return Point(
        monotonic() - began_s,
        periods,
        int(resident.split()[1]) * 1024,
        int(runtime.totalMemory() - runtime.freeMemory()),
        threading.active_count(),
        len(os.listdir("/proc/self/fd")),
        sum(len(files) for _, _, files in os.walk(checkpoint)),
    )


def run() -> Iterator[dict[str, object]]:
    """Ten looks at the same run; growth is counted from the second on."""
    seen = 0

    def count(_: object) -> None:
        nonlocal seen
        seen += 1

    with tempfile.TemporaryDirectory(prefix="penstock-soak-") as folder:
        home = Path(folder)
        settings = Settings(
            period_s=PERIOD_S, batch_interval_s=1.0, history=str(home / "history.sqlite"),
            key_groups=2,
        )  # fmt: skip
        place = Place(checkpoint=home / "checkpoint")
        found = []
        with ElasticRun(speeds(home / "out"), settings, place, count) as running:
            began_s = monotonic()
            print("  at s  periods  resident MB  heap MB  threads  open  checkpoint files",
                  file=sys.stderr)  # fmt: skip
            for _ in range(POINTS):
                running.wait(MINUTES * 60 / POINTS)
                point = looked_at(running, began_s, home / "checkpoint", seen)
                found.append(point)
                print(
                    f"{point.at_s:6.0f}  {point.periods:7}  {point.resident_bytes / 1e6:11.1f}  "
                    f"{point.heap_bytes / 1e6:7.1f}  {point.threads:7}  {point.files:4}  "
                    f"{point.checkpoint_files:16}",
                    file=sys.stderr, flush=True,
                )  # fmt: skip
    early, last = found[1], found[-1]
    for name, unit, before, after in (
        ("resident", "MB", early.resident_bytes / 1e6, last.resident_bytes / 1e6),
        ("heap", "MB", early.heap_bytes / 1e6, last.heap_bytes / 1e6),
        ("checkpoint_files", "files", early.checkpoint_files, last.checkpoint_files),
    ):
        yield {
            "name": f"memory_on_spark/{name}",
            "baseline": round(before, 1),
            "ours": round(after, 1),
            "unit": unit,
            "ratio": round(before / after, 3) if after else math.nan,
            "conditions": (
                f"{ROWS_PER_S:g} rows/s, local[2], {last.periods} periods of {PERIOD_S:g} s in "
                f"{last.at_s / 60:.0f} min; baseline: after {early.periods} periods"
            ),
        }
