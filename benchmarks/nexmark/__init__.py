"""Nexmark: plain Spark with its defaults, tuned, in a session of ours, and as a topology.

Run: make bench NAME=nexmark (all queries as one topology), or NAME=nexmark:q5 for one of them;
NAME=nexmark:each runs every query alone, beside tuned plain Spark, NAME=nexmark:longer all of them
over three times as many batches, without Spark's defaults, which take most of an hour. The same
files, two slots, each side in a process of its own; how many rows differ is said.
"""

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.nexmark.events import PER_S, Events
from benchmarks.nexmark.programs import results
from benchmarks.nexmark.queries import BY_NAME
from benchmarks.nexmark.worker import DEFAULTS, MODES, OURS, TUNED

TOGETHER = ("q1", "q2", "q3", "q5", "q7", "q8", "q11", "q17")
EACH, LONGER = "each", "longer"
CASES = (EACH, LONGER, *BY_NAME)


@dataclass(frozen=True)
class Size:
    """How much there is to read, and by whom."""

    events: int = 1_000_000
    files: int = 10  # one a batch
    modes: tuple[str, ...] = MODES

    def figures(self, took: dict[str, float]) -> str:
        """What one side took."""
        return (
            f"{self.events / took['seconds']:,.0f} events/s, "
            f"{took['seconds'] / self.files:.1f} s a batch, {took['cpu_s']:.0f} s of CPU, "
            f"{took['state_bytes'] / 1e6:.1f} MB of state"
        )


SIZES = {EACH: Size(modes=(TUNED, OURS)), LONGER: Size(3_000_000, 30, MODES[1:])}


def run(case: str = "") -> Iterator[dict[str, Any]]:
    """Seconds of plain queries over those of Penstock, for all together or for each."""
    size = SIZES.get(case, Size())
    with tempfile.TemporaryDirectory(prefix="penstock-nexmark-") as folder:
        events = Path(folder) / "events"
        Events(rate=PER_S).write(events, size.events, size.files)
        one = (case,) if case in BY_NAME else TOGETHER
        chosen = [(name,) for name in BY_NAME] if case == EACH else [one]
        for names in chosen:
            yield from _compared(names, size, events, Path(folder))


def _compared(
    names: tuple[str, ...], size: Size, events: Path, folder: Path
) -> Iterator[dict[str, Any]]:
    label = names[0] if len(names) == 1 else f"{len(names)} queries"
    took = {}
    if any(BY_NAME[name].needs_rocksdb for name in names):
        size = replace(size, modes=tuple(mode for mode in size.modes if mode != DEFAULTS))
    for mode in size.modes:
        out = folder / "-".join((mode, *names))
        print(f"benchmarks: nexmark, {label}, {mode} ...", file=sys.stderr, flush=True)
        command: list[Any] = [
            sys.executable,
            "-m",
            "benchmarks.nexmark.worker",
            mode,
            events,
            out,
            *names,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{mode} failed: {done.stderr[-2000:]}")
        took[mode] = json.loads(done.stdout.splitlines()[-1])
        print(f"benchmarks: {size.figures(took[mode])}", file=sys.stderr, flush=True)
    conditions = (
        f"{size.events:,} events in {size.files} files, one a batch, local[2], cold; "
        f"{_differences(names, size, folder)}; "
        + "; ".join(f"{mode}: {size.figures(one)}" for mode, one in took.items())
    )
    for mode in size.modes[:-1]:
        baseline, ours = took[mode]["seconds"], took[OURS]["seconds"]
        yield {
            "name": f"nexmark/{label}/{mode}", "baseline": round(baseline, 1),
            "ours": round(ours, 1), "unit": "s", "ratio": round(baseline / ours, 2),
            "conditions": conditions,
        }  # fmt: skip


def _differences(names: tuple[str, ...], size: Size, folder: Path) -> str:
    """How many rows of the topology the last plain queries do not have, or the other way round."""
    said = []
    for name in names:
        plain, ours = (
            Counter(results(BY_NAME[name], folder / "-".join((mode, *names))))
            for mode in size.modes[-2:]
        )
        if more := (plain - ours).total():
            said.append(f"{name} lacks {more} of {plain.total():,} rows")
        if more := (ours - plain).total():
            said.append(f"{name} has {more} rows more than {plain.total():,}")
    return "; ".join(said) or "all rows equal"
