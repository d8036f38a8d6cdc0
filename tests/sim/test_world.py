"""The simulated cluster: start-up, draining, nothing lost, the same again from the same seed."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config import Settings
from penstock.control.actions import SetExecutors, SetParallelism
from penstock.scaling.policies.registry import policy
from penstock.scaling.policies.static import Static
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
from penstock.sim.world import SimulatedWorld
from penstock.workloads.profiles import constant, steps


def scenario(sharing="time", rate=50.0, mean_s=0.01, startup_s=3.0, **more):
    operator = OperatorSpec("serve", (Upstream("in"),), ServiceTime("exponential", mean_s))
    return Scenario(
        "small", 120.0, 2.0, (SourceSpec("in", constant(rate)),), (operator,),
        ClusterSpec(1, 1, 4, startup_s=startup_s), sharing, BatchCost(0.5), **more,
    )  # fmt: skip


@pytest.mark.parametrize("sharing", ["time", "space"])
def test_new_executors_take_the_start_up_delay(sharing):
    world = SimulatedWorld(scenario(sharing))
    world.wait_s(10.0)
    assert world.act(SetExecutors(3)).done
    assert world.act(SetParallelism({"serve": 3})).done is (sharing == "space")
    assert world.executors() == 3
    world.wait_s(2.9)
    assert world.observe().processors == 1
    world.wait_s(0.2)
    seen = world.observe()
    assert seen.processors == 3
    assert seen.components[0].parallelism == 3


def test_an_executor_given_up_while_it_starts_never_comes():
    world = SimulatedWorld(scenario())
    world.act(SetExecutors(2))
    world.wait_s(1.0)
    world.act(SetExecutors(1))
    world.wait_s(9.0)
    assert [node.name for node in world.observe().nodes] == ["node-0"]
    assert world.cluster.node_seconds(10.0) == 10.0


def test_a_batch_under_way_keeps_the_executor_that_drains():
    slow = replace(scenario(startup_s=0.0), batch=BatchCost(fixed_s=8.0))
    world = SimulatedWorld(slow)
    world.act(SetExecutors(2))
    world.wait_s(10.0)  # batches begin at the first arrival and about 8 s later
    world.act(SetExecutors(1))
    world.wait_s(0.1)
    assert [node.draining for node in world.observe().nodes] == [False, True]
    world.wait_s(9.0)
    assert [node.draining for node in world.observe().nodes] == [False]
    # one executor for all of it, the other until the second batch ended
    assert world.cluster.node_seconds(19.1) - 19.1 == pytest.approx(18.0, abs=1.0)


def test_a_server_taken_away_finishes_its_row():
    busy = replace(
        scenario("space", startup_s=0.0),
        sources=(SourceSpec("in", steps([(1, 2.0), (1, 0.0)]), "regular"),),
        operators=(OperatorSpec("serve", (Upstream("in"),), ServiceTime("deterministic", 10.0)),),
    )
    world = SimulatedWorld(busy)
    world.act(SetExecutors(2))
    world.act(SetParallelism({"serve": 2}))
    world.wait_s(3.0)  # both rows are in service
    world.act(SetExecutors(1))
    world.wait_s(4.0)
    before = world.observe()
    assert [node.draining for node in before.nodes] == [False, True]
    world.wait_s(5.0)
    seen = world.observe()
    assert before.components[0].busy_s + seen.components[0].busy_s == pytest.approx(20.0)
    assert seen.latency.count == 2
    assert seen.latency.max_s == pytest.approx(10.0)
    assert len(seen.nodes) == 1


def test_what_cannot_be_done_is_an_outcome():
    world = SimulatedWorld(scenario())
    assert not world.act(SetExecutors(0)).done
    assert world.executors() == 1


def test_time_ends_with_the_scenario():
    world = SimulatedWorld(scenario())
    assert world.wait_s(100.0)
    assert not world.wait_s(100.0)
    assert world.now_s() == 120.0
    assert world.observe() is not None
    assert world.observe() is None


@pytest.mark.parametrize("sharing", ["time", "space"])
def test_the_seed_decides_everything(sharing):
    case = scenario(sharing, mean_s=0.03)
    first, again = (simulate(case, policy("incremental")) for _ in range(2))
    np.testing.assert_array_equal(first.results.at_s, again.results.at_s)
    np.testing.assert_array_equal(first.results.latency_s, again.results.latency_s)
    assert first.executor_seconds == again.executor_seconds
    other = simulate(replace(case, seed=99), policy("incremental"))
    assert other.arrived_rows != first.arrived_rows


@pytest.mark.parametrize("sharing", ["time", "space"])
def test_the_same_rows_arrive_under_every_policy(sharing):
    case = scenario(sharing, mean_s=0.03)
    fixed, moved = simulate(case, Static()), simulate(case, policy("incremental"))
    assert moved.changes
    assert fixed.arrived_rows == moved.arrived_rows
    assert moved.in_time_share > fixed.in_time_share


def test_processors_shared_in_space_go_where_the_work_is():
    case = replace(
        scenario("space", rate=50.0, startup_s=1.0),
        operators=(
            OperatorSpec("light", (Upstream("in"),), ServiceTime("exponential", 0.002)),
            OperatorSpec("heavy", (Upstream("light"),), ServiceTime("exponential", 0.04)),
        ),
        cluster=ClusterSpec(2, 2, 6, startup_s=1.0),
    )
    run = simulate(case, policy("incremental"))
    light, heavy = run.observations[-1].components
    assert light.parallelism == 1
    assert heavy.parallelism >= 3
    assert run.observations[-1].latency.in_time_share > 0.95


@st.composite
def lossless(draw):
    """A graph in which every row takes one way: any splits, no copies, selectivity 1."""
    count = draw(st.integers(1, 5))
    upstreams = [[] for _ in range(count)]
    names = ["in", *(f"op_{n}" for n in range(count))]
    for n in range(count):
        feeder = draw(st.integers(0, n))
        upstreams[n].append([names[feeder], 1.0])
    readers = {name: [up for ups in upstreams for up in ups if up[0] == name] for name in names}
    for edges in readers.values():
        if len(edges) > 1:
            weights = [draw(st.integers(1, 5)) for _ in edges]
            for edge, weight in zip(edges, weights, strict=True):
                edge[1] = weight / sum(weights) * draw(st.sampled_from([1.0, 0.5]))
    operators = tuple(
        OperatorSpec(
            names[n + 1],
            tuple(Upstream(name, share) for name, share in upstreams[n]),
            ServiceTime(draw(st.sampled_from(["exponential", "lognormal"])), 0.02),
        )
        for n in range(count)
    )
    sharing = draw(st.sampled_from(["time", "space"]))
    slots = count if sharing == "space" else 1
    rate = draw(st.sampled_from([0.0, 3.0, 60.0, 4000.0]))
    return Scenario(
        "lossless", 30.0, 1.0, (SourceSpec("in", constant(rate)),), operators,
        ClusterSpec(1, 1, 3, slots, startup_s=1.5), sharing, BatchCost(0.4),
        seed=draw(st.integers(0, 1000)), period_s=3.0,
    )  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(lossless(), st.lists(st.integers(1, 3), min_size=9, max_size=9))
def test_nothing_is_lost_or_made(case, totals):
    world = SimulatedWorld(case)
    results = 0
    for total in [*totals, 1]:
        world.wait_s(3.0)
        seen = world.observe()
        results += seen.latency.count if seen.latency else 0
        assert world.arrived_rows == results + world.held_rows
        assert seen.backlog_rows == world.held_rows
        for component in seen.components:
            assert component.busy_s >= -1e-9
        world.act(SetExecutors(total))


def test_a_split_divides_and_a_copy_repeats():
    serve = ServiceTime("deterministic", 0.001)
    case = replace(
        scenario("time", rate=200.0),
        operators=(
            OperatorSpec("all", (Upstream("in"),), serve, sink=True),
            OperatorSpec("most", (Upstream("all", 0.7),), serve, selectivity=2.5),
            OperatorSpec("few", (Upstream("all", 0.1),), serve, selectivity=0.5),
        ),
    )
    run = simulate(case, Static())
    rates = {op.name: op for op in run.observations[3].operators}
    assert rates["most"].arrival_rate_per_s == pytest.approx(140, rel=0.15)
    assert rates["most"].selectivity == pytest.approx(2.5, rel=0.02)
    assert rates["few"].arrival_rate_per_s == pytest.approx(20, rel=0.3)
    expected = run.arrived_rows * (1 + 0.7 * 2.5 + 0.1 * 0.5)
    assert run.results.count == pytest.approx(expected, rel=0.05)


def test_batches_are_slower_while_executors_start_and_as_long_again():
    slowed = scenario(startup_s=3.0)
    slowed = replace(slowed, cluster=replace(slowed.cluster, pause_s=1.0))
    world = SimulatedWorld(slowed)
    world.wait_s(10.0)
    world.observe()
    world.act(SetExecutors(2))
    overheads = []
    for _ in range(3):
        world.wait_s(5.0)
        overheads.append(world.observe().batches.mean_overhead_s)
    assert overheads[0] > 0.9  # 0.5, and 1 more of those that began since the request
    assert 0.5 < overheads[1] < overheads[0]  # until 16 s
    assert overheads[2] == pytest.approx(0.5)
    world.act(SetExecutors(1))
    world.wait_s(5.0)
    assert world.observe().batches.mean_overhead_s == pytest.approx(0.5)


def test_rates_by_batch_are_those_of_batches_that_are_over():
    rising = replace(
        scenario(mean_s=0.001), rates_by_batch=True,
        sources=(SourceSpec("in", steps([(10.0, 50.0), (20.0, 100.0)]), "regular"),),
    )  # fmt: skip
    world = SimulatedWorld(rising)
    seen = []
    for _ in range(4):
        world.wait_s(5.0)
        seen.append(world.observe())
    assert seen[1].arrival_rate_per_s == pytest.approx(50.0, rel=0.05)
    assert 60.0 < seen[2].arrival_rate_per_s < 100.0  # the batch before the step is in it
    assert seen[3].arrival_rate_per_s == pytest.approx(100.0, rel=0.05)
    assert all(0 < one.rate_age_s < 3.0 for one in seen)


def test_the_latency_that_the_promised_share_kept_is_observed():
    given = scenario(share=0.9)
    for settings_given, share in ((None, 0.9), (Settings(share=0.999), 0.999)):
        run = simulate(given, Static(), settings=settings_given)
        began_s = 0.0
        for seen in run.observations:
            here = (run.results.at_s > began_s) & (run.results.at_s <= seen.at_s)
            began_s = seen.at_s
            if seen.latency is None:
                continue
            rows = np.repeat(run.results.latency_s[here], run.results.rows[here])
            assert seen.latency.count == len(rows)
            kept_s = np.quantile(rows, share, method="inverted_cdf")
            assert seen.latency.share_s == pytest.approx(kept_s)
