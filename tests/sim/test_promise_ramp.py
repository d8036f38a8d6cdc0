"""A load that climbs soon after a fresh start: `promise` knows nothing yet, and must not be late.

The demo's road in the simulator: its load, its settings, 1 to 4 executors of two slots that take
eight seconds to start.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.cli.demo_road import demo_settings
from penstock.control.foresight import Foresight
from penstock.control.from_settings import policy_of
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
from penstock.workloads.gantries import Gantries


def ridden(policy: str, bound_s: float, seed: int) -> SimulationResult:
    settings = replace(demo_settings(policy, Path("nowhere")), batch_interval_s=None)
    load = Gantries(120.0).load
    road = Scenario(
        name="ramp",
        sources=(SourceSpec("reports", load),),
        operators=(
            OperatorSpec("lookup", (Upstream("reports"),), ServiceTime("exponential", 0.008)),
        ),
        cluster=ClusterSpec(executors=1, min_executors=1, max_executors=4, slots=2, startup_s=8.0),
        batch=BatchCost(fixed_s=1.0),
        duration_s=load.duration_s,
        period_s=settings.period_s,
        max_latency_s=bound_s,
        sharing="time",
        seed=seed,
    )
    return simulate(
        road, policy_of(settings, 2), settings=settings, foresight=Foresight(settings.foresight_s)
    )


@pytest.mark.parametrize("bound_s", [5.0, 10.0])
@pytest.mark.parametrize("seed", [1, 2])
def test_on_a_ramp_from_a_fresh_start_no_result_is_late(bound_s: float, seed: int) -> None:
    assert ridden("promise", bound_s, seed).in_time_share >= 0.99


@pytest.mark.parametrize("seed", [1, 2])
def test_what_keeps_a_tight_bound_on_a_ramp_costs_no_more_than_with_drs(seed: int) -> None:
    ours, theirs = ridden("promise", 5.0, seed), ridden("drs", 5.0, seed)
    assert ours.in_time_share >= theirs.in_time_share
    assert ours.paid_executor_seconds <= theirs.paid_executor_seconds
