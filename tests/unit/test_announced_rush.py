"""What admission foresees holds executors back, whichever forecaster has the best record."""

from dataclasses import replace

import numpy as np
import pytest

from penstock.forecast.calendar import RateCalendar
from penstock.model.decision import ActPrice, Limits, ScalingPlan
from penstock.model.observation import (
    ComponentObservation,
    LaneObservation,
    NodeObservation,
    Observation,
    SourceObservation,
)
from penstock.scaling.policies.policy import ScalingContext
from penstock.scaling.policies.promise import Promise
from penstock.scaling.policies.promise_inputs import read_promise_inputs

PERIOD_S, HORIZON_S = 3.0, 15.0
AHEAD = 5  # periods of the horizon
CALM, RUSH = 200.0, 700.0


def observed(
    rate_per_s: float, foreseen_per_s: float | None, at_s: float, processors: int
) -> Observation:
    part = ComponentObservation("a", ("a",), rate_per_s, 0.01, processors, 1.0)
    lane = LaneObservation("lane", 1, 0, rate_per_s)
    source = SourceObservation(
        "cabs", 1, 0, 0, 0, 0, 0, lanes=(lane,), foreseen_rate_per_s=foreseen_per_s,
        foreseen_horizon_s=None if foreseen_per_s is None else HORIZON_S,
    )  # fmt: skip
    nodes = (NodeObservation("n", processors, 1.0),)
    return Observation(
        at_s, PERIOD_S, rate_per_s, 0.0, components=(part,), nodes=nodes, sources=(source,)
    )


def context_of(
    window: tuple[Observation, ...], processors: int, start_up_s: float = 6.0
) -> ScalingContext:
    return ScalingContext(
        window, ScalingPlan({"a": processors}, processors), Limits(2, 64, 5.0),
        act_price=ActPrice(start_up_s),
    )  # fmt: skip


def calm_then_rush(count: int, rush_at: int) -> np.ndarray:
    rates = CALM + np.random.default_rng(1).normal(0.0, 4.0, count)
    rates[rush_at:] = RUSH
    return rates


def told(rates: np.ndarray, now: int, processors: int) -> ScalingContext:
    """Admission foresees the highest rate within its horizon."""
    window = tuple(
        observed(
            float(rates[at]), float(rates[at : at + AHEAD + 1].max()), at * PERIOD_S, processors
        )
        for at in range(now + 1)
    )
    return context_of(window, processors)


# Two of four for 4 periods save 24 executor-seconds; to start them again costs as much at 6 s.
@pytest.mark.parametrize(
    ("start_up_s", "before"),
    [(s, n) for s in (6.0, 24.0) for n in (4, 3, 2, 1) if (s, n) != (6.0, 4)],
)
@pytest.mark.parametrize("calm", [12, 40])
def test_no_executor_is_given_back_that_a_foreseen_rush_needs_before_it_had_paid(
    start_up_s: float, calm: int, before: int
) -> None:
    """Four of eight went 3 s before a rush where a start takes 24 s: no rush was on record yet."""
    window = told(calm_then_rush(calm + 8, calm), calm - before, 8).window
    decision = Promise(step=2).decide(context_of(window, 8, start_up_s))
    assert decision.plan.processors >= 8


def test_before_a_rush_is_foreseen_what_is_not_needed_goes() -> None:
    rates = calm_then_rush(60, 52)
    assert Promise(step=2).decide(told(rates, 52 - AHEAD - 1, 8)).plan.processors < 8


def test_a_rush_that_should_have_come_is_not_waited_for() -> None:
    rates = CALM + np.random.default_rng(1).normal(0.0, 4.0, 60)

    def decided(said_for: int) -> int:
        window = tuple(
            observed(float(rates[at]), RUSH if at >= 60 - said_for else 208.0, at * PERIOD_S, 8)
            for at in range(60)
        )
        return Promise(step=2).decide(context_of(window, 8)).plan.processors

    assert decided(AHEAD) == 8
    assert decided(AHEAD + 3) < 8


def test_admission_is_heard_in_a_run_whose_periods_are_not_all_alike() -> None:
    """One period that was twice as long, and nothing it foresaw counted for the rest of the run."""

    for late_s in (0.0, PERIOD_S):
        window = tuple(
            replace(seen, at_s=seen.at_s + (late_s if at > 20 else 0.0))
            for at, seen in enumerate(told(calm_then_rush(48, 42), 39, 8).window)
        )
        inputs = read_promise_inputs(context_of(window, 8), 0.0, 300.0, RateCalendar())
        assert inputs is not None
        assert inputs.ahead.forecaster == "what admission foresees"
        assert inputs.ahead.expected_per_s[-1] == pytest.approx(RUSH)
        assert Promise(step=2).decide(context_of(window, 8)).plan.processors >= 8


def test_where_nothing_is_foreseen_nothing_is_kept_for_it() -> None:
    rates = CALM + np.random.default_rng(1).normal(0.0, 4.0, 60)
    window = tuple(observed(float(rates[at]), None, at * PERIOD_S, 8) for at in range(60))
    inputs = read_promise_inputs(context_of(window, 8), 0.0, 300.0, RateCalendar())
    assert inputs is not None
    assert np.isnan(inputs.announced.ahead_per_s).all()
    assert Promise(step=2).decide(context_of(window, 8)).plan.processors < 8
