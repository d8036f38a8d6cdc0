"""Memory of the loop over a week of five-second periods, simulated: it must not grow."""

import gc
import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from penstock.config import Settings
from penstock.control.controller import RecentSteps
from penstock.control.history.store import HistoryStore
from penstock.control.records import RunRecord
from penstock.control.step import Step
from penstock.scaling.policies.registry import policy
from penstock.sim.run import simulate
from penstock.sim.scenario import (
    BatchCost,
    ClusterSpec,
    OperatorSpec,
    Scenario,
    SourceSpec,
    Upstream,
)
from penstock.sim.service import ServiceTime
from penstock.workloads.profiles import steps

PERIOD_S = 5.0
WEEK = 120_960  # periods
POINTS = 8
TUMULT_S = 1_800.0  # how often the load goes up and down, and executors with it


@dataclass(frozen=True)
class Point:
    """What is held after so many periods."""

    periods: int
    blocks: int  # of memory that Python has handed out, without those of numpy
    resident_bytes: int  # of the process, numpy included
    history_bytes: int  # on disk
    reconfigurations: int


def up_and_down(periods: int) -> Scenario:
    """Batches whose load doubles and halves every half hour, with executors for either."""
    load = steps([(TUMULT_S, 2.0), (TUMULT_S, 12.0)], repeat=True)
    operator = OperatorSpec("serve", (Upstream("in"),), ServiceTime("exponential", 0.15))
    return Scenario(
        "week", periods * PERIOD_S, PERIOD_S, (SourceSpec("in", load),), (operator,),
        ClusterSpec(1, 1, 4, startup_s=10.0), "time", BatchCost(1.0), step_s=1.0,
    )  # fmt: skip


def measured(periods: int, points: Sequence[int], history: Path) -> list[Point]:
    """The real loop with a real history, and what it holds after each of some periods."""
    held, found, seen = RecentSteps(), list[Point](), 0
    scenario = up_and_down(periods)
    settings = Settings(executors_min=1, executors_max=4, slots=1)

    def look(step: Step) -> None:
        nonlocal seen
        held.append(step)
        seen += 1
        if seen in points:
            gc.collect()
            done = held.summary(5.0, 1, 4).reconfigurations
            blocks = sys.getallocatedblocks()
            found.append(Point(seen, blocks, _resident_bytes(), _size(history), done))

    with HistoryStore(str(history)) as store:
        run = store.begin(RunRecord("week", "incremental", 0.0, PERIOD_S, 5.0))
        simulate(
            scenario, policy("incremental"), settings=settings, history=run, on_step=look,
            keep=False,
        )  # fmt: skip
    return found


def _resident_bytes() -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def _size(history: Path) -> int:
    return sum(file.stat().st_size for file in history.parent.glob(history.name + "*"))


def run() -> Iterator[dict[str, object]]:
    """Memory at eight moments of the week; growth is told from the second day on."""
    points = [math.ceil(WEEK * n / POINTS) for n in range(1, POINTS + 1)]
    began_s = perf_counter()
    with tempfile.TemporaryDirectory(prefix="penstock-memory-") as folder:
        found = measured(WEEK, points, Path(folder) / "history.sqlite")
    print("periods   blocks  resident MB  history MB  reconfigurations", file=sys.stderr)
    for point in found:
        print(
            f"{point.periods:7}  {point.blocks:7}  {point.resident_bytes / 1e6:11.1f}  "
            f"{point.history_bytes / 1e6:10.1f}  {point.reconfigurations:16}",
            file=sys.stderr,
        )
    early, last = found[1], found[-1]
    yield {
        "name": "memory/week_of_periods",
        "baseline": round(early.resident_bytes / 1e6, 1),
        "ours": round(last.resident_bytes / 1e6, 1),
        "unit": "MB",
        "ratio": round(early.resident_bytes / last.resident_bytes, 3),
        "conditions": (
            f"{WEEK} simulated periods of {PERIOD_S:g} s, 1 to 4 executors, "
            f"{last.reconfigurations} reconfigurations, SQLite history of "
            f"{last.history_bytes / 1e6:.0f} MB; resident memory, baseline: after "
            f"{early.periods} periods, ours: after all; blocks of Python's memory "
            f"{early.blocks} and {last.blocks}; {perf_counter() - began_s:.0f} s"
        ),
    }
