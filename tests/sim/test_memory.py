"""A long run needs no more memory than a short one."""

import gc
import tracemalloc
from collections.abc import Callable

import pytest

from penstock.config import Settings
from penstock.control.controller import RecentSteps
from penstock.control.step import Step
from penstock.scaling.policies.registry import policy
from penstock.sim.run import SimulationResult, simulate
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

PERIODS, PERIOD_S = 2_400, 5.0
# A step with its observation and decision needs some 4 kB; what guards remember, for a day at
# most, some 200 bytes.
MOST_BYTES_A_PERIOD = 1_000


def up_and_down(periods: int) -> Scenario:
    """A load that comes and goes every ten minutes, and executors with it."""
    load = steps([(600.0, 2.0), (600.0, 12.0)], repeat=True)
    operator = OperatorSpec("serve", (Upstream("in"),), ServiceTime("exponential", 0.15))
    return Scenario(
        "long", periods * PERIOD_S, PERIOD_S, (SourceSpec("in", load),), (operator,),
        ClusterSpec(1, 1, 4, startup_s=10.0), "time", BatchCost(1.0), step_s=1.0,
    )  # fmt: skip


def run(periods: int, look: Callable[[Step], None], keep: bool) -> SimulationResult:
    settings = Settings(executors_min=1, executors_max=4, slots=1)
    return simulate(
        up_and_down(periods), policy("incremental"), settings=settings, on_step=look, keep=keep
    )  # fmt: skip


@pytest.mark.parametrize("keep", [False, True], ids=["forgets", "keeps"])
def test_memory_of_the_loop_does_not_grow_with_a_run(keep: bool) -> None:
    periods = PERIODS if not keep else PERIODS // 4
    held, seen, traced = RecentSteps(most=100), 0, list[int]()

    def look(step: Step) -> None:
        nonlocal seen
        held.append(step)
        seen += 1
        if seen in (periods // 2, periods):
            gc.collect()
            traced.append(tracemalloc.get_traced_memory()[0])

    tracemalloc.start()
    try:
        run(periods, look, keep)
    finally:
        tracemalloc.stop()
    growth_bytes = (traced[1] - traced[0]) / (periods - periods // 2)
    assert held.summary(5.0, 1, 4).reconfigurations > 20
    if keep:  # so that the bound is one that a run which keeps its steps would break
        assert growth_bytes > 2 * MOST_BYTES_A_PERIOD
    else:
        assert growth_bytes < MOST_BYTES_A_PERIOD


def test_what_is_not_kept_is_seen_and_counted_all_the_same() -> None:
    kept, seen = list[Step](), list[Step]()
    whole, thin = run(200, kept.append, True), run(200, seen.append, False)
    assert [step.line() for step in seen] == [step.line() for step in kept]
    assert (thin.steps, thin.results.count) == ((), 0)
    assert len(whole.steps) == 200
    counted = (whole.arrived_rows, whole.held_rows, whole.executor_seconds)
    assert (thin.arrived_rows, thin.held_rows, thin.executor_seconds) == counted
