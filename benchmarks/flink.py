"""Flink beside us: Nexmark's queries for throughput, and the ramp of the elastic benchmark.

Run: make bench-flink, which makes an environment with apache-flink first; CASE=nexmark or elastic
for one of both. Nexmark: the same queries over the same CSV files by Flink SQL, one job there, one
topology here; both sides have two slots of this machine, start cold, and write what they append to
files.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks import _flink_elastic
from benchmarks.nexmark import TOGETHER, Size
from benchmarks.nexmark.events import PER_S, Events

PYTHON = "PENSTOCK_FLINK_PYTHON"
NEXMARK, ELASTIC = "nexmark", "elastic"
CASES = (NEXMARK, ELASTIC)
SLOTS = 2  # of either side
WORKER = Path(__file__).parent / "nexmark" / "flink_worker.py"


def run(case: str = "") -> Iterator[dict[str, Any]]:
    """Flink as baseline, ours; nothing where Flink is not there."""
    python = os.environ.get(PYTHON)
    if not python:
        print(f"benchmarks: flink skipped: {PYTHON} names no Python with apache-flink; "
              "`make bench-flink` makes one.", file=sys.stderr)  # fmt: skip
        return
    with tempfile.TemporaryDirectory(prefix="penstock-flink-") as folder:
        if case in ("", NEXMARK):
            yield _nexmark(python, Path(folder))
        if case in ("", ELASTIC):
            yield from _flink_elastic.run(python, Path(folder))


def _nexmark(python: str, folder: Path) -> dict[str, Any]:
    """Seconds of Flink over ours."""
    events, size = folder / "events", Size()
    Events(rate=PER_S).write(events, size.events, size.files, csv=True)
    in_order = _in_order(events, folder / "in_order")
    theirs = _took([python, WORKER, in_order, folder / "flink", *TOGETHER])
    worker = [sys.executable, "-m", "benchmarks.nexmark.worker", "penstock"]
    ours = _took([*worker, events, folder / "penstock", *TOGETHER])
    return {
        "name": "flink/nexmark", "baseline": round(theirs, 1), "ours": round(ours, 1),
        "unit": "s", "ratio": round(theirs / ours, 2),
        "conditions": f"{len(TOGETHER)} queries ({', '.join(TOGETHER)}) over {size.events:,} "
        f"events in {size.files} CSV files, two slots, cold; Flink {_version(python)} as one SQL "
        f"job over the same rows in {SLOTS} files, Penstock one file a batch; {_counts(folder)}",
    }  # fmt: skip


def _in_order(events: Path, folder: Path) -> Path:
    """The same rows in a file for each slot, every n-th row in each.

    Of several files Flink reads the newest first, by which its watermark passes what is older. So
    every slot reads one, and all come to the same time together, as partitions of a topic would.
    """
    for kind in events.iterdir():
        (folder / kind.name).mkdir(parents=True)
        with ExitStack() as held:
            parts = [held.enter_context((folder / kind.name / f"{n}.csv").open("wb"))
                     for n in range(SLOTS)]  # fmt: skip
            lines = (line for file in sorted(kind.glob("*.csv")) for line in file.open("rb"))
            for line, part in zip(lines, cycle(parts), strict=False):
                part.write(line)
    return folder


def _counts(folder: Path) -> str:
    """Rows of both sides, of queries whose rows Flink writes."""
    said = []
    for name in TOGETHER:
        theirs = list((folder / "flink" / name).glob("part-*"))
        lines = sum(file.read_bytes().count(b"\n") for file in theirs)
        ours = (folder / "penstock" / name).glob("batch=*/*.parquet")
        rows = sum(pq.read_metadata(file).num_rows for file in ours)
        if theirs:
            said.append(f"{name} {lines:,} and {rows:,}")
    return f"rows, where the end of all files closes Flink's last windows: {', '.join(said)}"


def _took(command: list[Any]) -> float:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[:3]} failed: {done.stderr[-2000:]}")
    return float(json.loads(done.stdout.splitlines()[-1])["seconds"])


def _version(python: str) -> str:
    code = "from importlib.metadata import version; print(version('apache-flink'))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True).stdout.strip()
