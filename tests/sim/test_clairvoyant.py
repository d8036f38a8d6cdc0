"""The clairvoyant: its flow against closed forms, its plans against all plans there are."""

from dataclasses import replace
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


@pytest.mark.parametrize("trigger_s", [2.0, 4.0, 10.0])
def test_with_an_interval_rows_take_from_a_batch_to_an_interval_more_evenly(trigger_s):
    scenario = replace(
        scenario_of(constant(80), most=1), batch=BatchCost(OVERHEAD_S, trigger_s=trigger_s)
    )
    batch_s = OVERHEAD_S + 0.4 * trigger_s
    flow = BatchFlow(scenario, np.array([1]))
    length_s, late_rows = flow.advance(50, np.array([batch_s]), np.array([0]))
    assert float(length_s[0]) == pytest.approx(batch_s)
    expected = min(1.0, max(0.0, (trigger_s + batch_s - 5.0) / trigger_s))
    assert float(late_rows[0]) / 400 == pytest.approx(expected)


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
    """Every sequence of sizes that can be: their costs and their late rows."""
    first = planner.flow.scenario.cluster.executors
    plans = np.array([(first, *sizes) for sizes in product((1, 2, 3), repeat=periods - 1)])
    rises = np.diff(plans, axis=1)[:, : served_from - 1] > 0
    plans = plans[~rises.any(axis=1)]
    length_s, late_rows = np.full(len(plans), OVERHEAD_S), np.zeros(len(plans))
    for period in range(periods):
        length_s, late = planner.flow.advance(period, length_s, plans[:, period] - 1)
        late_rows += late
    return np.array([planner.cost_of(plan) for plan in plans]), late_rows


@pytest.mark.parametrize("profile", LOADS)
@pytest.mark.parametrize("startup_s", [0.0, 5.0])
def test_its_plans_are_as_good_as_the_best_of_all_plans(profile, startup_s):
    scenario = scenario_of(profile, 40.0, executors=2, startup_s=startup_s, share=0.9)
    planner = Clairvoyant(scenario)
    costs, late_rows = all_plans(planner, 8, 1 + round(startup_s / 5.0))
    for price in (0.002, 0.02, 0.2):
        best = float((costs + price * late_rows).min())
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
    costs, late_rows = all_plans(planner, 8, 2)
    least = float(costs[late_rows <= planner.allowed_rows].min())
    found = planner.cheapest()
    assert found.late_rows <= planner.allowed_rows
    assert found.at_least <= 1.01 * least
    assert least <= 1.01 * found.cost
    assert found.cost <= least + 20.0  # eight periods leave gaps between prices


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
    scenario = scenario_of(constant(560), 60.0, executors=3)
    plan = Clairvoyant(scenario).cheapest()
    assert max(plan.sizes) == 3
    assert plan.late_rows > 0.01 * 560 * 60
    assert plan.at_least == plan.cost
