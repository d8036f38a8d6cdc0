"""What a period of the loop costs as a cluster grows, simulated, with a history on disk.

The simulated measurer gives what the one on Spark gives: a load, a size and a place for each key
group, and a figure for each executor. Seconds are of this process (`time.process_time`), so that
other programs count for nothing.
"""

import math
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.config import Settings
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
from penstock.workloads.profiles import constant

PERIOD_S = 5.0
PERIODS = 12
SIZES = ((10, 1_000), (100, 10_000), (300, 30_000), (1_000, 100_000))  # executors, key groups
LIMIT_S = 1.0


@dataclass(frozen=True)
class Cost:
    """Of one size: seconds of a core a period, and what the history grows by in one."""

    executors: int
    key_groups: int
    median_s: float
    worst_s: float
    history_bytes: float
    resident_mb: float


def busy(executors: int, key_groups: int) -> Scenario:
    """Batches that use half of all executors, with state in key groups of different weight."""
    rate = executors * 0.5 / 0.001
    operator = OperatorSpec("serve", (Upstream("in"),), ServiceTime("deterministic", 0.001))
    cluster = ClusterSpec(
        executors, 1, executors, key_groups=key_groups, key_skew=0.5, startup_s=30.0
    )
    return Scenario(
        "scale", PERIODS * PERIOD_S, PERIOD_S, (SourceSpec("in", constant(rate)),), (operator,),
        cluster, "time", BatchCost(0.5), step_s=1.0, jobs_per_step=100,
    )  # fmt: skip


def cost(executors: int, key_groups: int, allocation: str | None) -> Cost:
    """The real loop and a real history over a simulated cluster of this size."""
    took, last_s = list[float](), time.process_time()

    def look(_: Step) -> None:
        nonlocal last_s
        now_s = time.process_time()
        took.append(now_s - last_s)
        last_s = now_s

    settings = Settings(
        executors_min=1, executors_max=executors, slots=1, key_groups=key_groups,
        allocation=allocation,
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="penstock-scale-") as folder:
        file = Path(folder) / "history.sqlite"
        with HistoryStore(str(file)) as store:
            run = store.begin(RunRecord("scale", "promise", 0.0, PERIOD_S, 5.0))
            simulate(
                busy(executors, key_groups), policy("promise"), settings=settings, history=run,
                on_step=look, keep=False,
            )  # fmt: skip
        size = sum(one.stat().st_size for one in Path(folder).iterdir())
    resident_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    later = took[2:] or took
    return Cost(
        executors, key_groups, statistics.median(later), max(later), size / len(took), resident_mb
    )


def run() -> Iterator[dict[str, object]]:
    """Each size without and with moves of key groups; the growth between the last two."""
    for allocation in (None, "milp"):
        found = []
        for size in SIZES:
            one = cost(*size, allocation)
            found.append(one)
            print(
                f"allocation {allocation or 'off':4} {one.executors:5} executors "
                f"{one.key_groups:7} key groups: {one.median_s:.3f} s a period, worst "
                f"{one.worst_s:.3f} s, history {one.history_bytes / 1e3:.1f} kB a period, "
                f"resident at most {one.resident_mb:.0f} MB",
                file=sys.stderr, flush=True,
            )  # fmt: skip
        last, before = found[-1], found[-2]
        power = math.log(last.median_s / before.median_s) / math.log(
            last.key_groups / before.key_groups
        )
        yield {
            "name": f"scale/period_{allocation or 'without_moves'}",
            "baseline": LIMIT_S,
            "ours": round(last.median_s, 3),
            "unit": "s of a core",
            "ratio": round(LIMIT_S / last.median_s, 2),
            "conditions": (
                f"{last.executors} executors, {last.key_groups} key groups, simulated; grows with "
                f"the {power:.2f}th power from {before.key_groups}; worst {last.worst_s:.2f} s; "
                f"history {last.history_bytes / 1e3:.0f} kB a period; resident at most "
                f"{last.resident_mb:.0f} MB"
            ),
        }
