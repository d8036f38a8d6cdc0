"""Nexmark: plain Spark with its defaults, plain Spark tuned as our sessions are, and a topology.

Run: make bench NAME=nexmark (all queries as one topology), or NAME=nexmark:q5 for one of them;
NAME=nexmark:each runs every query alone. The same files, two slots, each side in a process of its
own; rows must be equal.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.nexmark.events import Events
from benchmarks.nexmark.programs import results
from benchmarks.nexmark.queries import BY_NAME
from benchmarks.nexmark.worker import MODES

EVENTS, FILES, PER_S = 1_000_000, 10, 10_000.0
TOGETHER = ("q1", "q2", "q3", "q5", "q7", "q8", "q11", "q17")
EACH = "each"
CASES = (EACH, *BY_NAME)


def run(case: str = "") -> Iterator[dict[str, Any]]:
    """Seconds of plain queries over those of Penstock, for all together or for each."""
    with tempfile.TemporaryDirectory(prefix="penstock-nexmark-") as folder:
        events = Path(folder) / "events"
        Events(per_s=PER_S).write(events, EVENTS, FILES)
        chosen = [(name,) for name in BY_NAME] if case == EACH else [(case,) if case else TOGETHER]
        for names in chosen:
            yield from _compared(names, events, Path(folder))


def _compared(names: tuple[str, ...], events: Path, folder: Path) -> Iterator[dict[str, Any]]:
    label = names[0] if len(names) == 1 else f"{len(names)} queries"
    took = {}
    for mode in MODES:
        out = folder / "-".join((mode, *names))
        print(f"benchmarks: nexmark, {label}, {mode} ...", file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "benchmarks.nexmark.worker", mode, events, out, *names]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{mode} failed: {done.stderr[-2000:]}")
        took[mode] = json.loads(done.stdout.splitlines()[-1])
    equal = _equal(names, folder)
    conditions = (
        f"{EVENTS:,} events in {FILES} files, one a batch, local[2], cold; rows equal: {equal}; "
        + "; ".join(f"{mode}: {_figures(one)}" for mode, one in took.items())
    )
    for mode in MODES[:-1]:
        baseline, ours = took[mode]["seconds"], took["penstock"]["seconds"]
        yield {
            "name": f"nexmark/{label}/{mode}", "baseline": round(baseline, 1),
            "ours": round(ours, 1), "unit": "s", "ratio": round(baseline / ours, 2),
            "conditions": conditions,
        }  # fmt: skip


def _figures(took: dict[str, float]) -> str:
    return (
        f"{EVENTS / took['seconds']:,.0f} events/s, {took['seconds'] / FILES:.1f} s a batch, "
        f"{took['cpu_s']:.0f} s of CPU, {took['state_bytes'] / 1e6:.1f} MB of state"
    )


def _equal(names: tuple[str, ...], folder: Path) -> bool:
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = spark.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    try:
        return all(
            len({_digest(session, name, folder / "-".join((mode, *names))) for mode in MODES}) == 1
            for name in names
        )
    finally:
        session.stop()


def _digest(session: SparkSession, name: str, out: Path) -> int:
    return hash(tuple(results(session, BY_NAME[name], out)))
