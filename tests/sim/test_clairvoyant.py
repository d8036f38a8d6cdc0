"""The clairvoyant: its flow against closed forms, its plans against all plans there are."""

from itertools import product

import numpy as np
import pytest

from penstock.sim.batch_flow import BatchFlow
from penstock.sim.clairvoyant import Clairvoyant
from penstock.sim.following import follow
from penstock.sim.scenario import (
    BatchCost,
    ClusterSpec,
    OperatorSpec,
    Scenario,
    SourceSpec,
    Upstream,
)
from penstock.sim.service import ServiceTime
from penstock.workloads.profiles import constant, steps

OVERHEAD_S = 0.25


def scenario_of(profile, duration_s=600.0, executors=1, most=3, startup_s=5.0, **more):
    return Scenario(
        "small", duration_s, 5.0, (SourceSpec("in", profile),),
        (OperatorSpec("work", (Upstream("in"),), ServiceTime("exponential", 0.01)),),
        ClusterSpec(executors, 1, most, 2, startup_s), batch=BatchCost(OVERHEAD_S), **more,
    )  # fmt: skip


def followed(flow, sizes):
    """Cost-free replay of a plan: the length of a batch at its end, and its late rows."""
    length_s, late_rows = np.array([OVERHEAD_S]), 0.0
    for period, size in enumerate(sizes):
        place = np.array([int(np.searchsorted(flow.sizes, size))])
        length_s, late = flow.advance(period, length_s, place)
        late_rows += float(late[0])
    return float(length_s[0]), late_rows


@pytest.mark.parametrize("load", [0.3, 0.6, 0.9])
def test_under_a_steady_load_batches_are_as_long_as_the_formula_says(load):
    flow = BatchFlow(scenario_of(constant(load * 200)), np.array([1]))
    length_s, _ = followed(flow, [1] * 120)
    assert length_s == pytest.approx(OVERHEAD_S / (1 - load), rel=1e-3)


@pytest.mark.parametrize(("trigger_s", "late"), [(0.0, 0.0), (4.0, 0.2125), (10.0, 0.535)])
def test_rows_are_late_evenly_over_the_cycle(trigger_s, late):
    batch = BatchCost(OVERHEAD_S, trigger_s=trigger_s)
    # B = O + 0.4 I, and a row takes from B to I + B, evenly.
    scenario = Scenario(
        "t", 600.0, 5.0, (SourceSpec("in", constant(80)),),
        (OperatorSpec("work", (Upstream("in"),), ServiceTime("exponential", 0.01)),),
        ClusterSpec(1, 1, 1, 2), batch=batch,
    )  # fmt: skip
    flow = BatchFlow(scenario, np.array([1]))
    expected = max(0.0, trigger_s + OVERHEAD_S + 0.4 * trigger_s - 5.0) / (trigger_s or 1.0)
    assert expected == pytest.approx(late if trigger_s else 0.0, abs=0.4)
    length_s = np.array([OVERHEAD_S + 0.4 * trigger_s or OVERHEAD_S])
    _, rows = flow.advance(50, length_s, np.array([0]))
    assert float(rows[0]) / 400 == pytest.approx(expected, abs=1e-6)


def test_overload_piles_up_and_is_worked_off():
    flow = BatchFlow(scenario_of(steps([(60, 300.0), (540, 60.0)])), np.array([1, 2, 3]))
    grown_s, late_rows = followed(flow, [1] * 12)
    assert grown_s > 10
    assert late_rows > 0.5 * flow.rows[:12].sum()
    assert followed(flow, [1] * 120)[0] == pytest.approx(OVERHEAD_S / 0.7, rel=0.01)


LOADS = [
    steps([(15, 100.0), (10, 450.0), (15, 50.0)]),
    steps([(10, 300.0), (20, 100.0), (10, 520.0)]),
    steps([(5, 20.0), (5, 500.0), (5, 20.0), (5, 500.0), (20, 200.0)]),
]


def all_plans(planner, periods, served_from):
    """Every sequence of sizes that can be, with its cost and its late rows."""
    for sizes in product((1, 2, 3), repeat=periods - 1):
        plan = (planner.flow.scenario.cluster.executors, *sizes)
        rises = [n for n in range(1, periods) if plan[n] > plan[n - 1]]
        if not rises or rises[0] >= served_from:
            yield plan, planner.cost_of(np.array(plan)), followed(planner.flow, plan)[1]


@pytest.mark.parametrize("profile", LOADS)
@pytest.mark.parametrize("startup_s", [0.0, 5.0])
def test_its_plans_are_as_good_as_the_best_of_all_plans(profile, startup_s):
    scenario = scenario_of(profile, 40.0, executors=2, startup_s=startup_s, share=0.9)
    planner = Clairvoyant(scenario)
    plans = list(all_plans(planner, 8, 1 + round(startup_s / 5.0)))
    for price in (0.002, 0.02, 0.2):
        best = min(cost + price * late for _, cost, late in plans)
        found = planner.plan(price)
        mine = (
            planner.cost_of(np.array(found.sizes)) + price * followed(planner.flow, found.sizes)[1]
        )
        assert best <= mine + 1e-9
        assert mine <= 1.01 * best
        assert found.at_least + price * planner.allowed_rows == pytest.approx(best, rel=0.02)


@pytest.mark.parametrize("profile", LOADS)
def test_no_plan_that_keeps_the_share_costs_less_than_its_bound(profile):
    scenario = scenario_of(profile, 40.0, executors=2, share=0.9)
    planner = Clairvoyant(scenario)
    kept = [cost for _, cost, late in all_plans(planner, 8, 2) if late <= planner.allowed_rows]
    found = planner.cheapest()
    assert found.late_rows <= planner.allowed_rows
    assert found.at_least <= 1.01 * min(kept)
    assert min(kept) <= 1.01 * found.cost
    assert found.cost <= min(kept) + 3 * 5.0 + 5.0  # eight periods leave gaps between prices


def test_a_plan_costs_in_the_simulator_what_it_says_and_keeps_the_share():
    profile = steps([(120, 100.0), (120, 450.0), (120, 50.0), (120, 300.0)], repeat=True)
    scenario = scenario_of(profile, 1440.0, most=4, startup_s=15.0)
    planner = Clairvoyant(scenario)
    plan = planner.cheapest()
    real = follow(scenario, plan.sizes)
    assert real.paid_executor_seconds == pytest.approx(plan.cost, rel=0.02)
    assert real.results.in_time_share(5.0) > 0.97
    assert plan.at_least <= plan.cost <= 1.05 * plan.at_least


def test_where_no_plan_keeps_the_share_the_one_with_the_most_in_time_is_given():
    scenario = scenario_of(constant(2000), 60.0)
    plan = Clairvoyant(scenario).cheapest()
    assert plan.sizes[-1] == 1 or max(plan.sizes) == 3
    assert plan.late_rows > 0.01 * 2000 * 60
    assert plan.at_least == plan.cost
