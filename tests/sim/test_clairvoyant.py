"""The clairvoyant: its flow against closed forms, its plans against all plans there are."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from benchmarks._informed import Informed
from benchmarks.arena_limits import priced, with_fewer
from penstock.forecast.paths import Seasonal, Trend
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
    changes = np.count_nonzero(np.diff(plans, axis=1), axis=1)
    return np.array([planner.cost_of(plan) for plan in plans]), late_rows, changes


@pytest.mark.parametrize("profile", LOADS)
@pytest.mark.parametrize("startup_s", [0.0, 5.0])
def test_its_plans_are_as_good_as_the_best_of_all_plans(profile, startup_s):
    scenario = scenario_of(profile, 40.0, executors=2, startup_s=startup_s, share=0.9)
    planner = Clairvoyant(scenario)
    costs, late_rows, _ = all_plans(planner, 8, 1 + round(startup_s / 5.0))
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
    costs, late_rows, _ = all_plans(planner, 8, 2)
    least = float(costs[late_rows <= planner.allowed_rows].min())
    found = planner.cheapest()
    assert found.late_rows <= planner.allowed_rows
    assert found.at_least <= 1.01 * least
    assert least <= 1.01 * found.cost
    assert found.cost <= least + 20.0  # eight periods leave gaps between prices


@pytest.mark.parametrize("profile", LOADS)
def test_with_a_price_on_changes_its_plans_are_as_good_as_the_best_of_all(profile):
    scenario = scenario_of(profile, 40.0, executors=2, share=0.9)
    free = Clairvoyant(scenario)
    costs, late_rows, changes = all_plans(free, 8, 2)
    made = []
    for change_price in (5.0, 20.0, 60.0):
        planner = free.priced(change_price)
        best = float((costs + 0.02 * late_rows + change_price * changes).min())
        found = planner.plan(0.02)
        mine = found.cost + 0.02 * followed(free.flow, found.sizes)[1]
        assert mine + change_price * found.changes <= 1.01 * best
        assert found.at_least + 0.02 * free.allowed_rows == pytest.approx(best, rel=0.02)
        made.append(found.changes)
    assert made == sorted(made, reverse=True)
    assert free.plan(0.02).sizes == Clairvoyant(scenario).plan(0.02).sizes


@pytest.mark.parametrize("profile", LOADS)
def test_no_plan_with_so_few_changes_costs_less_than_the_bound_for_them(profile):
    scenario = scenario_of(profile, 40.0, executors=2, share=0.9)
    planner = Clairvoyant(scenario)
    costs, late_rows, changes = all_plans(planner, 8, 2)
    free = planner.cheapest()
    frontier = tuple(priced(planner, free))
    for most in (0, 1, 2, 4):
        few = with_fewer(planner, free, frontier, most)
        kept = costs[(late_rows <= planner.allowed_rows) & (changes <= most)]
        assert few.at_least <= 1.01 * float(kept.min(initial=np.inf))
        if few.plan is not None:
            assert few.plan.changes <= most
            assert float(kept.min()) <= 1.01 * few.plan.cost


def test_late_rows_of_many_plans_are_those_of_each():
    scenario = scenario_of(LOADS[2], 40.0, executors=2, share=0.9)
    planner = Clairvoyant(scenario)
    plans = np.array([[2, 2, 1, 1, 3, 3, 2, 1], [2] * 8, [2, 1, 1, 1, 1, 1, 1, 1]])
    each = [followed(planner.flow, plan)[1] for plan in plans]
    assert planner.late_rows_of(plans) == pytest.approx(each, rel=0.03, abs=2.0)


def test_who_knows_the_rate_ahead_has_executors_up_in_time_and_pays_for_their_start():
    profile = steps([(120, 100.0), (120, 450.0), (120, 50.0), (120, 300.0)], repeat=True)
    scenario = scenario_of(profile, 1440.0, most=4, startup_s=15.0)
    planner = Clairvoyant(scenario)
    informed = Informed(planner)
    known = list(informed.with_margins(informed.known_ahead()))
    found = informed.cheapest(known)
    assert planner.cheapest().at_least <= found.cost
    assert found.sizes[24 - 3 : 24].tolist() == [found.sizes[24]] * 3  # asked for 15 s before
    assert found.cost == pytest.approx(5.0 * found.sizes.sum())
    late = informed.cheapest(informed.with_margins(informed.last_value()))
    assert late.cost > found.cost
    few = informed.cheapest(known, most_changes=10)
    assert few.changes <= 10 < found.changes
    assert few.cost > found.cost


def test_a_forecast_is_of_what_was_counted_before_and_of_nothing_later():
    rates = steps([(300, 100.0), (300, 450.0)], repeat=True)
    early = Informed(Clairvoyant(scenario_of(rates, 900.0, most=4, startup_s=15.0)))
    informed = Informed(Clairvoyant(scenario_of(rates, 1200.0, most=4, startup_s=15.0)))
    same = 170  # periods; the counts of both are of one seed
    assert (early.counted_per_s[:same] == informed.counted_per_s[:same]).all()
    for by in (Trend(5), Seasonal()):
        assert (early.forecast(by)[:same] == informed.forecast(by)[:same]).all()
    assert (informed.last_value()[1:] == informed.counted_per_s[:-1]).all()


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
