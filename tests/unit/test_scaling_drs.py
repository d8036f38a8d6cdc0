"""The triggers of the DRS scheduler (Fu et al. 2017, s. IV-B)."""

import math
from dataclasses import replace

import pytest

from penstock.config import Settings
from penstock.control.from_settings import policy_of
from penstock.errors import InvalidInput
from penstock.model.decision import Limits, ScalingPlan
from penstock.model.observation import (
    BatchObservation,
    ComponentObservation,
    LatencyObservation,
    NodeObservation,
    Observation,
)
from penstock.scaling.policies.drs import Drs
from penstock.scaling.policies.policy import ScalingContext
from penstock.scaling.policies.registry import read_policy_option

# The chain of the video-logo detection: features of a frame, matches of a feature, aggregation.
SERVICE_RATE = {"extract": 2.0, "match": 40.0, "aggregate": 100.0}
VISITS = {"extract": 1.0, "match": 20.0, "aggregate": 5.0}
EDGES = (("extract", "match"), ("match", "aggregate"))


def minute(
    at: int, frames_per_s: float, parallelism: dict[str, int], latency_s: float
) -> Observation:
    components = tuple(
        ComponentObservation(
            name=name,
            operators=(name,),
            arrival_rate_per_s=frames_per_s * VISITS[name],
            service_time_s=1 / SERVICE_RATE[name],
            parallelism=parallelism[name],
            busy_s=60.0 * frames_per_s * VISITS[name] / SERVICE_RATE[name],
        )
        for name in SERVICE_RATE
    )
    return Observation(
        at_s=60.0 * at,
        period_s=60.0,
        arrival_rate_per_s=frames_per_s,
        backlog_rows=0.0,
        components=components,
        latency=LatencyObservation(100, latency_s, latency_s, latency_s, 1.0),
    )


def run(
    split: tuple[int, int, int],
    minutes: list[tuple[float, float]],
    max_processors: int = 22,
    max_latency_s: float = 3.0,
    changed_at_s: float | None = None,
) -> ScalingContext:
    parallelism = dict(zip(SERVICE_RATE, split, strict=True))
    return ScalingContext(
        window=tuple(
            minute(at, rate, parallelism, latency) for at, (rate, latency) in enumerate(minutes)
        ),
        current=ScalingPlan(parallelism, sum(split)),
        limits=Limits(1, max_processors, max_latency_s),
        edges=EDGES,
        sharing="space",
        changed_at_s=changed_at_s,
    )


def test_shortage_is_answered_with_the_least_that_keeps_the_bound() -> None:
    given = run((4, 4, 1), [(6.0, 5.0)] * 6)
    decision = Drs(model="mmk", correct=False).decide(given)
    assert decision.plan.processors > 9
    assert decision.infeasible is None
    assert "measured 5 s is above the bound" in decision.reasons[0]


def test_the_load_of_what_lies_behind_a_bottleneck_is_seen() -> None:
    """`extract` serves only 4 frames a second of 8, so `match` sees half of what will come."""
    given = run((2, 9, 2), [(8.0, 30.0)] * 6, max_processors=60)
    blocked = tuple(
        replace(
            seen,
            components=tuple(
                replace(
                    part,
                    arrival_rate_per_s=part.arrival_rate_per_s
                    / (1 if part.name == "extract" else 2),
                    busy_s=part.busy_s / 2,
                )
                for part in seen.components
            ),
        )
        for seen in given.window
    )
    decision = Drs(model="mmk", correct=False).decide(replace(given, window=blocked))
    assert decision.plan.parallelism["match"] >= 5  # 8 frames x 20 features / 40 a second


def test_surplus_is_given_back_only_when_measured_below_t_min() -> None:
    wasteful = run((12, 15, 5), [(6.0, 1.4)] * 6, max_processors=40)
    policy = Drs(model="mmk", min_latency_share=0.45)
    assert policy.decide(wasteful).plan == wasteful.current  # 1.4 s is not below 0.45 x 3 s
    low = run((12, 15, 5), [(6.0, 1.2)] * 6, max_processors=40)
    assert policy.decide(low).plan.processors < 32
    unmeasured = replace(low, window=tuple(replace(seen, latency=None) for seen in low.window))
    assert policy.decide(unmeasured).plan == low.current


def test_a_bad_split_of_the_right_number_is_mended() -> None:
    given = run((14, 7, 1), [(13.0, 2.5)] * 6)
    best = run((10, 10, 2), [(13.0, 2.5)] * 6)
    policy = Drs(model="mmk", correct=False)
    decision = policy.decide(given)
    assert decision.plan.processors == 22
    assert decision.plan.parallelism == policy.decide(best).plan.parallelism
    assert policy.decide(replace(best, current=decision.plan)).plan == decision.plan


def test_nothing_happens_before_t_ra_has_passed() -> None:
    minutes = [(6.0, 5.0)] * 6
    early = run((4, 4, 1), minutes, changed_at_s=60.0)
    assert Drs(model="mmk", reallocate_after_s=360.0).decide(early).plan == early.current
    late = run((4, 4, 1), minutes, changed_at_s=-60.0)
    assert Drs(model="mmk", reallocate_after_s=360.0).decide(late).plan != late.current


def test_a_change_seen_in_the_window_counts_where_none_was_told() -> None:
    given = run((4, 4, 1), [(6.0, 5.0)] * 6)
    fewer = tuple(
        replace(seen, components=tuple(replace(c, parallelism=1) for c in seen.components))
        for seen in given.window[:4]
    )
    changed = replace(given, window=(*fewer, *given.window[4:]))
    assert changed.in_force_s == 120.0
    assert Drs(model="mmk", reallocate_after_s=180.0).decide(changed).plan == given.current
    assert Drs(model="mmk", reallocate_after_s=120.0).decide(changed).plan != given.current


def test_latencies_from_before_the_last_change_do_not_count() -> None:
    given = run((5, 6, 1), [(6.0, 9.0)] * 5 + [(6.0, 1.9)], changed_at_s=240.0)
    decision = Drs(model="mmk", smoothing_window=6, correct=False).decide(given)
    assert decision.plan == given.current


def test_a_longer_window_sleeps_through_a_short_burst() -> None:
    """Claim D4: three minutes at twice the rate move w = 3 but not w = 6."""
    quiet, burst = (6.0, 1.6), (12.0, 2.2)
    given = run((5, 5, 1), [quiet] * 6 + [burst] * 3, max_latency_s=2.0)
    slow = Drs(model="mmk", smoothing_window=6, predictive=False, correct=False)
    fast = Drs(model="mmk", smoothing_window=3, predictive=False, correct=False)
    assert slow.decide(given).plan == given.current
    assert fast.decide(given).plan.processors > given.current.processors


def test_measured_above_the_bound_goes_on_in_single_steps_where_the_model_sees_enough() -> None:
    given = run((8, 8, 2), [(6.0, 4.0)] * 6, max_processors=40)
    decision = Drs(model="mmk", correct=False).decide(given)
    assert decision.plan.processors == 19


def test_the_correction_asks_for_what_the_plain_model_would_not() -> None:
    """Measured latency is three times the estimate: a bound of 3 s means 1 s for the model."""
    given = run((8, 8, 2), [(6.0, 3.2)] * 6, max_processors=60)
    corrected = Drs(model="mmk").decide(given)
    assert "pairs" in corrected.reasons[-1]
    assert corrected.plan.processors > 19


def test_all_processors_are_used_for_the_other_objective() -> None:
    given = run((6, 8, 1), [(6.0, 1.0)] * 6)
    decision = Drs(model="gigk", objective="processors").decide(given)
    assert decision.plan.processors == 22


def test_an_impossible_bound_is_said_with_the_best_plan() -> None:
    given = run((6, 8, 1), [(6.0, 3.0)] * 6, max_latency_s=0.5)
    decision = Drs(model="mmk", correct=False).decide(given)
    assert decision.infeasible is not None
    assert "service alone takes" in decision.infeasible
    assert decision.plan.processors <= 22


def together(
    processors: int, rate: float, latency_s: float, overhead_s: float, max_latency_s: float = 5.0
) -> ScalingContext:
    service_s = 0.01
    batch_s = latency_s / 1.5
    seen = Observation(
        at_s=5.0,
        period_s=5.0,
        arrival_rate_per_s=rate,
        backlog_rows=1.5 * rate * batch_s,
        components=(
            ComponentObservation("a", ("a",), rate, service_s, processors, rate * service_s * 5),
        ),
        nodes=(NodeObservation("n", processors, 1.0),),
        latency=LatencyObservation(100, latency_s, latency_s, latency_s, 1.0),
        batches=BatchObservation(5, batch_s, overhead_s, rate * batch_s),
    )
    return ScalingContext(
        (seen,), ScalingPlan({"a": processors}, processors), Limits(1, 64, max_latency_s)
    )


def test_micro_batches_get_the_least_processors_for_the_bound() -> None:
    """Load 3.6 on 4 processors: B = 0.5 / 0.1 = 5 s, 7.5 s of latency; 5 give 2.7 s."""
    given = together(4, 360.0, 7.5, 0.5)
    steady = replace(given, window=(replace(given.window[0], backlog_rows=0.0),))
    decision = Drs().decide(steady)
    assert decision.plan.processors == 5
    assert "microbatch" in decision.reasons[-1]
    # 2700 rows wait, 900 more than one bound's worth: working them off in 5 s takes 1.8 more.
    assert Drs().decide(given).plan.processors == 7


def test_micro_batches_give_back_what_the_bound_does_not_need() -> None:
    assert Drs().decide(together(16, 100.0, 0.8, 0.5)).plan.processors == 2


def test_batches_that_take_their_time_on_any_number_do_not_hide_a_surplus() -> None:
    """1.5 batches of 1.2 s are all that can be had, and that is not below 0.45 x 4 s."""
    near_best = together(8, 60.0, 2.0, 1.2, max_latency_s=4.0)
    assert Drs().decide(near_best).plan.processors < 8
    within = together(8, 60.0, 3.2, 1.2, max_latency_s=4.0)
    assert Drs(correct=False).decide(within).plan == within.current


def test_no_more_processors_are_asked_for_where_they_cost_more_than_they_bring() -> None:
    given = together(8, 100.0, 6.0, 0.5)
    decision = Drs(batch_overhead_per_processor_s=0.5, correct=False).decide(given)
    assert decision.plan.processors <= 8


def test_wrong_options_are_refused() -> None:
    for options in ({"model": "mm1"}, {"objective": "cost"}, {"min_latency_share": 1.0}):
        with pytest.raises(InvalidInput):
            Drs(**options)  # type: ignore[arg-type]


def test_an_unknown_latency_is_not_a_surplus() -> None:
    given = together(16, 100.0, 0.8, 0.5)
    silent = replace(
        given.window[0], latency=LatencyObservation(0, math.nan, math.nan, math.nan, math.nan)
    )
    assert Drs().decide(replace(given, window=(silent,))).plan == given.current


def test_a_backlog_does_not_starve_the_components_that_keep_up() -> None:
    # 90,000 rows wait at the matcher: more than all processors could work off within the bound.
    context = run((4, 4, 1), [(6.0, 30.0)] * 4)
    behind = tuple(
        replace(
            observation,
            components=tuple(
                replace(c, backlog_rows=90_000.0 if c.name == "match" else 0.0)
                for c in observation.components
            ),
        )
        for observation in context.window
    )
    decision = Drs().decide(replace(context, window=behind))
    split = decision.plan.parallelism
    assert decision.infeasible is not None
    assert sum(split.values()) == 22
    for name, service_rate in SERVICE_RATE.items():
        assert split[name] > 6.0 * VISITS[name] / service_rate


def test_rows_that_wait_within_the_bound_are_no_backlog() -> None:
    context = run((4, 4, 1), [(6.0, 1.0)] * 4, max_latency_s=3.0)
    queued = tuple(
        replace(
            observation,
            components=tuple(replace(c, backlog_rows=5.0) for c in observation.components),
        )
        for observation in context.window
    )
    assert Drs().decide(replace(context, window=queued)).plan == Drs().decide(context).plan


def started_slowly(latency_s: float, max_latency_s: float, periods: int = 4) -> ScalingContext:
    """A first batch that took a minute, then batches as they are from now on; nothing waits."""
    given = together(4, 60.0, latency_s, 0.5, max_latency_s)
    later = replace(given.window[0], backlog_rows=0.0)
    first = replace(
        later,
        latency=LatencyObservation(100, 90.0, 90.0, 90.0, 0.0),
        batches=BatchObservation(1, 60.0, 160.0, 3600.0),
    )
    window = [replace(one, at_s=5.0 * n) for n, one in enumerate([first] + [later] * periods, 1)]
    return replace(given, window=tuple(window), changed_at_s=5.0)


def test_a_model_that_the_measurement_refutes_does_not_say_what_cannot_be_met() -> None:
    decision = Drs(correct=False).decide(started_slowly(3.42, max_latency_s=5.0))
    assert decision.infeasible is None
    assert decision.plan.processors == 4
    assert "3.42 s is within the bound" in decision.reasons[0]
    assert "the measurement counts" in decision.reasons[0]


def test_the_best_that_can_be_had_is_never_said_to_be_worse_than_what_is_measured() -> None:
    decision = Drs(correct=False).decide(started_slowly(3.42, max_latency_s=2.0))
    assert decision.infeasible is not None
    assert "2 s cannot be met: 3.42 s is measured with 4 processors" in decision.infeasible
    assert "the best is" not in decision.infeasible


def test_an_impossible_bound_is_said_in_the_seconds_of_the_user() -> None:
    """Measured is twice what the model says: its seconds are not those of the bound."""
    given = together(2, 60.0, 6.0, 1.4, max_latency_s=3.0)
    steady = replace(given, window=(replace(given.window[0], backlog_rows=0.0),))
    decision = Drs().decide(steady)
    assert decision.infeasible is not None
    assert "a mean latency of 3 s cannot be met: the best is " in decision.infeasible
    best_s = float(decision.infeasible.split("the best is ")[1].split()[0])
    assert 3.0 < best_s <= 6.0


def test_every_parameter_of_the_scheduler_is_an_option() -> None:
    """T_min, T_ra, smoothing, model and objective, as `--policy-option NAME=VALUE` gives them."""
    given = {
        "model": "gigk", "objective": "processors", "min_latency_share": "0.3",
        "reallocate_after_s": "2m", "smoothing_window": "5", "smoothing_alpha": "0.4",
    }  # fmt: skip
    read = {name: read_policy_option("drs", name, raw, name) for name, raw in given.items()}
    made = policy_of(Settings(policy="drs", policy_options=read))
    assert made == Drs(
        model="gigk", objective="processors", min_latency_share=0.3, reallocate_after_s=120.0,
        smoothing_window=5, smoothing_alpha=0.4,
    )  # fmt: skip
