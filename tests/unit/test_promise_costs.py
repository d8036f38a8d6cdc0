"""What `promise` learns of rows, batches and rates, and what it leaves out."""

import math
from dataclasses import replace

import numpy as np
import pytest

from penstock.forecast.calendar import RateCalendar
from penstock.model.batch_overhead import USUAL_OVERHEAD, BatchOverhead
from penstock.model.decision import ActPrice, Limits, ScalingPlan
from penstock.model.observation import (
    BatchObservation,
    ComponentObservation,
    LatencyObservation,
    NodeObservation,
    Observation,
)
from penstock.scaling.models.batch_course import Capacities, RatePath, Work, follow, steady_share_s
from penstock.scaling.policies.policy import ScalingContext
from penstock.scaling.policies.promise import Promise
from penstock.scaling.policies.promise_costs import learn_costs, row_cost_s
from penstock.scaling.policies.promise_inputs import (
    periods_ahead,
    planned_level,
    read_promise_inputs,
)

ROW_S, CONTENTION = 0.01, 0.1


def seen(
    at_s: float, processors: int = 4, in_time: float = 1.0, batch_s: float = 1.0
) -> Observation:
    row_s = ROW_S * (1 + CONTENTION * (processors - 1))
    return Observation(
        at_s, 5.0, 100.0, 0.0,
        components=(ComponentObservation("a", ("a",), 100.0, row_s, processors, 1.0),),
        nodes=(NodeObservation("n", processors, 1.0),),
        latency=LatencyObservation(500, 1.5 * batch_s, 1.9 * batch_s, 2 * batch_s, in_time),
        batches=BatchObservation(5, batch_s, 0.8 * batch_s, 100.0),
    )  # fmt: skip


@pytest.mark.parametrize("since", [0, 1, 6, 12])
def test_a_row_costs_the_same_before_and_after_a_change(since: int) -> None:
    before = [seen(5.0 * at, processors=8) for at in range(20)]
    after = [seen(5.0 * (20 + at), processors=4) for at in range(since)]
    assert row_cost_s([*before, *after], 0.0, CONTENTION) == pytest.approx(ROW_S)


def test_what_is_usual_is_believed_of_batches_until_the_run_is_warm() -> None:
    cold = learn_costs([seen(5.0, batch_s=4.0)], 0.0)
    assert cold is not None
    assert cold.overhead == USUAL_OVERHEAD
    warm = learn_costs([seen(5.0, batch_s=4.0), *(seen(5.0 * at) for at in range(3, 20))], 0.0)
    assert warm is not None
    assert warm.overhead.at(4) == pytest.approx(0.8)


def test_results_of_the_start_up_do_not_raise_the_level_of_the_load() -> None:
    late = [seen(5.0, in_time=0.0, batch_s=4.0), seen(10.0, in_time=0.0, batch_s=4.0)]
    warm = [seen(5.0 * at) for at in range(5, 60)]
    assert planned_level([*late, *warm], 0.99) < 0.985  # 0.995 where they counted


def test_a_rate_of_zero_before_the_first_batch_is_no_rate() -> None:
    first = replace(seen(0.0), arrival_rate_per_s=0.0, latency=None, batches=None)
    blind = replace(
        first, components=(ComponentObservation("a", ("a",), math.nan, math.nan, 4, 1.0),)
    )
    window = (blind, *(seen(5.0 * at) for at in range(1, 5)))
    context = ScalingContext(window, ScalingPlan({}, 4), Limits(1, 8, 5.0))
    inputs = read_promise_inputs(context, 0.0, 300.0, RateCalendar())
    assert inputs is not None
    assert inputs.rates_per_s.tolist() == [100.0] * 4


def test_what_waits_is_worked_off_where_nothing_arrived_since_a_batch_was_measured() -> None:
    batches = BatchObservation(1, 20.0, 1.0, 1_200.0)
    stopped = replace(
        seen(0.0, processors=1), arrival_rate_per_s=0.0, backlog_rows=9_600.0, batches=batches,
        components=(ComponentObservation("a", ("a",), 0.0, ROW_S, 1, 1_200 * ROW_S),),
    )  # fmt: skip
    costs = learn_costs([stopped], 0.0)
    assert costs is not None
    assert costs.row_s == pytest.approx(ROW_S)
    idle = (replace(stopped.components[0], busy_s=0.0),)
    between = replace(stopped, batches=None, latency=None, components=idle)
    window = (stopped, *(replace(between, at_s=2.0 * at) for at in range(1, 5)))
    early = replace(stopped, batches=None, latency=None, at_s=-2.0)
    apart = learn_costs([early, replace(stopped, components=idle)], 0.0)
    assert apart is not None, "work may be seen a period before the rows it was done for"
    assert apart.row_s == pytest.approx(ROW_S)
    decision = Promise().decide(ScalingContext(window, ScalingPlan({}, 1), Limits(1, 3, 10.0)))
    assert decision.plan.processors > 1


def test_a_period_without_a_batch_or_without_its_work_says_nothing_of_rows() -> None:
    """The rows of none are NaN, which made the cost of a row unknown for 60 periods."""
    ended = BatchObservation(1, 20.0, 1.0, 1_200.0)
    worked = ComponentObservation("a", ("a",), 0.0, ROW_S, 1, 1_200 * ROW_S)
    stopped = replace(seen(0.0, 1), arrival_rate_per_s=0.0, batches=ended, components=(worked,))
    none = BatchObservation(0, math.nan, math.nan, math.nan)
    between = replace(stopped, at_s=5.0, batches=none, components=(replace(worked, busy_s=0.0),))
    blind = replace(stopped, at_s=10.0, components=(replace(worked, busy_s=math.nan),))
    for window in ([stopped, between], [between, stopped], [stopped, blind, between]):
        costs = learn_costs(window, 0.0)
        assert costs is not None
        assert costs.row_s == pytest.approx(ROW_S)


def test_batches_that_vary_make_results_slower_and_serve_as_many() -> None:
    alike = Work(BatchOverhead(0.5), ROW_S)
    varied = replace(alike, stretch=1.5)
    processors, rate = np.array([1.0, 2.0, 4.0]), np.array([150.0])
    assert varied.rows_per_s(processors).tolist() == alike.rows_per_s(processors).tolist()
    expected_s = 1.5 * steady_share_s(alike, rate, processors)
    assert steady_share_s(varied, rate, processors) == pytest.approx(expected_s)
    path, capacity = RatePath(rate, 5.0), Capacities(((0.0, processors),))
    followed = [follow(path, work, capacity, 0.0, 6.0, 30.0).latency_s for work in (alike, varied)]
    assert followed[1] == pytest.approx(1.5 * followed[0])


@pytest.mark.parametrize("start_up_s", [4.98, 5.0, 5.02])
def test_how_far_it_looks_ahead_does_not_hang_on_milliseconds(start_up_s: float) -> None:
    assert periods_ahead(start_up_s, 5.0, age_s=0.0) == 2
    assert periods_ahead(start_up_s, 5.0, age_s=1.5) == 3


def test_rates_are_means_of_periods_so_one_that_ended_now_is_of_now() -> None:
    """What is asked for in 5 s serves from 20 s on: the fourth period ahead ends there."""
    assert periods_ahead(15.0, 5.0, age_s=0.0) == 4
    assert periods_ahead(15.0, 5.0, age_s=4.0) == 5  # the newest batch that is over began 4 s ago


def test_a_rate_that_batches_show_late_is_planned_for_longer() -> None:
    def ahead_s(age_s: float) -> float:
        window = tuple(replace(seen(5.0 * at), rate_age_s=age_s) for at in range(1, 20))
        context = ScalingContext(
            window, ScalingPlan({}, 4), Limits(2, 8, 5.0), act_price=ActPrice(5.0)
        )
        return Promise(step=2).decide(context).numbers["ahead_s"]

    assert ahead_s(0.0) == ahead_s(math.nan) == 10.0  # an older history does not say it
    assert ahead_s(1.5) == 15.0


def test_batches_of_an_executor_that_came_in_the_start_up_are_not_what_batches_cost() -> None:
    """It came before the run counted; the batches since then are of its start."""
    both = (NodeObservation("n", 4, 1.0), NodeObservation("m", 4, 1.0))
    cold = [seen(5.0, batch_s=1.0), replace(seen(10.0, batch_s=3.0), nodes=both)]
    slow = [replace(seen(at, batch_s=2.0), nodes=both) for at in (15.0, 20.0)]
    work = learn_costs([*cold, *slow], 0.0)
    assert work is not None
    assert work.overhead == USUAL_OVERHEAD
