"""Operators whose processors change in number, and rows that come in bulk."""

import math
from dataclasses import replace

import numpy as np
import pytest

from penstock.control.actions import SetParallelism
from penstock.model.decision import Decision, Limits, ScalingPlan
from penstock.model.observation import ComponentObservation, NodeObservation, Observation
from penstock.scaling.policies.policy import ScalingContext
from penstock.scaling.policies.static import Static
from penstock.sim.jobs import Jobs, separated
from penstock.sim.run import simulate
from penstock.sim.scenario import ClusterSpec, OperatorSpec, Scenario, SourceSpec, Upstream
from penstock.sim.service import ServiceTime
from penstock.sim.world import SimulatedWorld
from penstock.workloads.profiles import constant


def scenario(pause_s: float = 0.0, selectivity: float = 1.0, servers: int = 1) -> Scenario:
    """One row a second through a fast operator and one that takes 0.4 s."""
    fast = OperatorSpec(
        "fast", (Upstream("in"),), ServiceTime("deterministic", 0.001), selectivity, 1
    )
    slow = OperatorSpec(
        "slow", (Upstream("fast"),), ServiceTime("deterministic", 0.4), processors=servers
    )
    return Scenario(
        "resizing", 60.0, 5.0, (SourceSpec("in", constant(1.0), "regular"),), (fast, slow),
        ClusterSpec(servers + 2, servers + 1, servers + 2, pause_s=pause_s), "space",
        period_s=10.0, jobs_per_step=64,
    )  # fmt: skip


@pytest.mark.parametrize("servers", [1, 2, 3])
def test_a_resized_operator_pauses_and_others_do_not(servers: int) -> None:
    world = SimulatedWorld(scenario(pause_s=5.0, servers=2))
    world.wait_s(10.0)
    world.observe()
    world.act(SetParallelism({"slow": servers}))
    world.wait_s(10.0)
    seen = world.observe()
    assert seen is not None
    assert seen.latency is not None
    components = {component.name: component for component in seen.components}
    assert components["slow"].parallelism == servers
    assert components["fast"].service_time_s == pytest.approx(0.001)
    if servers == 2:  # what keeps its number goes on
        assert seen.latency.max_s == pytest.approx(0.401)
    else:
        assert 4.5 < seen.latency.max_s < 5.5
    assert components["slow"].busy_s <= 10.0 * servers


def test_busy_time_is_that_of_the_rows_served_whatever_the_pauses() -> None:
    world = SimulatedWorld(scenario(pause_s=3.0, servers=2))
    busy_s = 0.0
    for number in range(12):
        world.wait_s(4.9)
        world.act(SetParallelism({"slow": 1 + number % 2}))
        seen = world.observe()
        assert seen is not None
        busy_s += seen.components[1].busy_s
        assert seen.components[1].busy_s >= 0
    served = sum(results.count for results in world.results)
    assert busy_s == pytest.approx(0.4 * served, abs=0.4)


def test_rows_emitted_at_once_find_all_servers() -> None:
    alone = simulate(scenario(selectivity=3.0, servers=1), Static()).results
    beside = simulate(scenario(selectivity=3.0, servers=3), Static()).results
    assert beside.latency_s.max() == pytest.approx(0.401)
    assert alone.latency_s.max() > 1.2


def test_only_steps_with_few_rows_are_taken_apart() -> None:
    at_s = np.array([0.0, 0.05, 1.0, 2.0])
    jobs = Jobs(at_s, at_s - 1.0, np.array([3, 2, 50, 1]))
    parts = separated(jobs, step_s=0.1, most_per_step=8)
    assert parts.rows.tolist() == [1, 1, 1, 1, 1, 50, 1]
    assert parts.total_rows == jobs.total_rows
    assert parts.origin_s.tolist() == [-1.0] * 3 + [-0.95] * 2 + [0.0, 1.0]


def test_a_policy_sees_processors_that_moved_between_components() -> None:
    def seen(at_s: float, first: int, second: int) -> Observation:
        components = (
            ComponentObservation("a", ("a",), 1.0, 0.1, first, 1.0),
            ComponentObservation("b", ("b",), 1.0, 0.1, second, 1.0),
        )
        nodes = (NodeObservation("n", 4, 1.0),)
        return Observation(at_s, 10.0, 1.0, 0.0, components=components, nodes=nodes)

    window = (seen(10, 1, 3), seen(20, 1, 3), seen(30, 2, 2), seen(40, 2, 2))
    context = ScalingContext(
        window, Decision(ScalingPlan({"a": 2, "b": 2}, 4)).plan, Limits(2, 8, 5.0), sharing="space"
    )
    assert context.last_change_s == 20.0
    assert replace(context, changed_at_s=35.0).last_change_s == 35.0
    assert replace(context, changed_at_s=5.0).last_change_s == 20.0
    assert replace(context, sharing="time").last_change_s == -math.inf
    unmeasured = replace(window[1], components=window[1].components[:1])
    assert replace(context, window=(window[0], unmeasured)).last_change_s == -math.inf


def dealt(servers: int, rate: float, mean_s: float = 0.1) -> Scenario:
    operator = OperatorSpec(
        "serve", (Upstream("in"),), ServiceTime("exponential", mean_s), processors=servers,
        dispatch="round-robin",
    )  # fmt: skip
    return Scenario(
        "dealt", 2000.0, 5.0, (SourceSpec("in", constant(rate)),), (operator,),
        ClusterSpec(servers, 1, servers + 2), "space", period_s=100.0, jobs_per_step=64,
    )  # fmt: skip


def test_rows_dealt_round_robin_wait_longer_than_in_one_queue() -> None:
    scenario = dealt(4, 32.0)
    shared = replace(scenario, operators=(replace(scenario.operators[0], dispatch="shared"),))
    apart = simulate(scenario, Static()).results.mean_s
    assert apart > 1.3 * simulate(shared, Static()).results.mean_s
    # E4/M/1: the share that waits solves s = A(mu (1 - s)), A the transform of four exponentials.
    share = 0.5
    for _ in range(200):
        share = (32.0 / (32.0 + 10.0 * (1 - share))) ** 4
    assert apart == pytest.approx(0.1 / (1 - share), rel=0.1)


def test_no_row_is_lost_when_queues_are_taken_away() -> None:
    world = SimulatedWorld(dealt(3, 25.0))
    offered = busy_s = 0.0
    for number in range(19):
        world.wait_s(100.0)
        world.act(SetParallelism({"serve": 1 + number % 3}))
        seen = world.observe()
        assert seen is not None
        offered += seen.components[0].arrival_rate_per_s * seen.period_s
        busy_s += seen.components[0].busy_s
    served = sum(results.count for results in world.results)
    assert offered == pytest.approx(world.arrived_rows)
    assert served + world.held_rows == world.arrived_rows
    assert busy_s == pytest.approx(0.1 * served, rel=0.05)
