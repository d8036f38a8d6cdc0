"""What `promise` learns of rows, batches and rates, and what it leaves out."""

import math
from dataclasses import replace

import numpy as np
import pytest

from penstock.forecast.calendar import RateCalendar
from penstock.model.batch_overhead import USUAL_OVERHEAD, BatchOverhead
from penstock.model.decision import Limits, ScalingPlan
from penstock.model.observation import (
    BatchObservation,
    ComponentObservation,
    LatencyObservation,
    NodeObservation,
    Observation,
)
from penstock.scaling.models.batch_course import Capacities, RatePath, Work, follow, steady_worst_s
from penstock.scaling.policies.policy import ScalingContext
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


def test_batches_that_vary_make_results_slower_and_serve_as_many() -> None:
    alike = Work(BatchOverhead(0.5), ROW_S)
    varied = replace(alike, stretch=1.5)
    processors, rate = np.array([1.0, 2.0, 4.0]), np.array([150.0])
    assert varied.rows_per_s(processors).tolist() == alike.rows_per_s(processors).tolist()
    expected_s = 1.5 * steady_worst_s(alike, rate, processors)
    assert steady_worst_s(varied, rate, processors) == pytest.approx(expected_s)
    path, capacity = RatePath(rate, 5.0), Capacities(((0.0, processors),))
    followed = [follow(path, work, capacity, 0.0, 6.0, 30.0).worst_s for work in (alike, varied)]
    assert followed[1] == pytest.approx(1.5 * followed[0])


@pytest.mark.parametrize("start_up_s", [4.98, 5.0, 5.02, 7.5])
def test_how_far_it_looks_ahead_does_not_hang_on_milliseconds(start_up_s: float) -> None:
    assert periods_ahead(start_up_s, 5.0, measured=True) == 3


def test_what_is_announced_is_not_half_a_period_old() -> None:
    assert periods_ahead(15.0, 5.0, measured=False) == 4
    assert periods_ahead(15.0, 5.0, measured=True) == 5
