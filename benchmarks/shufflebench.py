"""ShuffleBench's job: plain Spark with its defaults, tuned, in a session of ours, and a topology.

Run: make bench NAME=shufflebench. All of them call the same two functions over the same files, with
two slots, each in a process of its own; it fails unless the same comes out of each.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from benchmarks._shufflebench_job import RECORD_BYTES, RULES, SELECTIVITY, write
from benchmarks.nexmark.worker import MODES

RECORDS, FILES = 100_000, 5
# Spark's own sink and ours write times in different ways.
MOMENT = pa.timestamp("us", "UTC")
EVENT = pa.schema(
    [("consumer", pa.int32()), ("checksum", pa.int64()), ("first", MOMENT), ("last", MOMENT)]
)


def run() -> Iterator[dict[str, Any]]:
    """Seconds of the plain queries over those of the topology."""
    with tempfile.TemporaryDirectory(prefix="penstock-shufflebench-") as made:
        folder = Path(made)
        write(folder / "records", RECORDS, FILES)
        took = {mode: _took(mode, folder) for mode in MODES}
        found = {mode: events(folder / mode / "events") for mode in MODES}
    if different := [mode for mode in MODES if found[mode] != found[MODES[0]]]:
        raise RuntimeError(f"events of {', '.join(different)} are not those of {MODES[0]}")
    conditions = (
        f"{RECORDS:,} records of {RECORD_BYTES} B in {FILES} files, one a batch, {RULES:,} "
        f"consumers that take {SELECTIVITY:.0%} together, local[2], cold; "
        f"{len(found[MODES[0]]):,} events, equal; "
        + "; ".join(
            f"{mode}: {RECORDS / one['seconds']:,.0f} records/s, {one['cpu_s']:.0f} s of CPU"
            for mode, one in took.items()
        )
    )
    ours = took[MODES[-1]]["seconds"]
    for mode in MODES[:-1]:
        baseline = took[mode]["seconds"]
        yield {
            "name": f"shufflebench/{mode}", "baseline": round(baseline, 1), "ours": round(ours, 1),
            "unit": "s", "ratio": round(baseline / ours, 2), "conditions": conditions,
        }  # fmt: skip


def _took(mode: str, folder: Path) -> dict[str, float]:
    print(f"benchmarks: shufflebench, {mode} ...", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "benchmarks._shufflebench_job", mode]
    done = subprocess.run(
        [*command, folder / "records", folder / mode], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{mode} failed: {done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def events(folder: Path) -> list[tuple[Any, ...]]:
    """What came out, whichever sink wrote it."""
    files = [str(file) for file in folder.rglob("*.parquet")]
    rows = ds.dataset(files).to_table(columns=list(EVENT.names))
    return sorted(zip(*rows.cast(EVENT).to_pydict().values(), strict=True))
