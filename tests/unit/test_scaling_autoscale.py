"""AUTOSCALE and AUTOSCALE+ on windows of measurements (Kotto-Kombi 2018, ch. 5 and 6)."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.config import Settings
from penstock.control.from_settings import policy_of
from penstock.errors import InvalidInput
from penstock.forecast.trends import KINDS, best_trends, linear_trends
from penstock.model.decision import Limits, ScalingPlan
from penstock.model.observation import ComponentObservation, Observation, TaskCpu
from penstock.scaling.activity import SCALE_IN, SCALE_OUT, Thresholds, degree, task_capacities
from penstock.scaling.exploration import upstream_first
from penstock.scaling.policies.autoscale import Autoscale
from penstock.scaling.policies.autoscale_plus import AutoscalePlus, usable_cpu
from penstock.scaling.policies.policy import ScalingContext
from penstock.scaling.policies.registry import read_policy_option
from penstock.scaling.suggestions import Suggestion
from penstock.scaling.windows import OperatorWindows

# Claim S1: fast, slow, fast with selectivity 0.1, slow.
NAMES = ("FastNonFilter", "SlowNonFilterMid", "FastFilter", "SlowNonFilterEnd")
LATENCY_S = (0.001, 0.1, 0.001, 0.1)
SELECTIVITY = (1.0, 1.0, 0.1, 1.0)


def windows(
    received: list[list[float]],
    parallelism: tuple[int, ...] = (1, 1, 1, 1),
    pending: tuple[float, ...] = (0, 0, 0, 0),
) -> OperatorWindows:
    size, length = len(received), len(received[0])
    return OperatorWindows(
        names=NAMES[:size],
        upstreams=((), (0,), (1,), (2,))[:size],
        duration_s=10.0 * length,
        received_rows=np.array(received, dtype=float),
        service_time_s=np.repeat(np.array(LATENCY_S[:size])[:, None], length, axis=1),
        pending_rows=np.array(pending[:size], dtype=float),
        selectivity=((), *((ratio,) for ratio in SELECTIVITY))[:size],
        parallelism=np.array(parallelism[:size]),
        max_parallelism=np.full(size, 100),
        known=(True,) * size,
        cpu=((),) * size,
        reserved_cpu=np.full(size, math.nan),
    )


def degrees(suggestions: list[Suggestion]) -> dict[str, int]:
    return {suggestion.name: suggestion.wanted for suggestion in suggestions}


def blocked() -> OperatorWindows:
    """40 rows/s come, the slow operator passes 10 rows/s on and 1000 rows wait before it."""
    return windows([[400.0] * 6, [400.0] * 6, [100.0] * 6, [10.0] * 6], pending=(0, 1000, 0, 0))


def test_the_global_check_sees_what_a_congested_operator_will_emit() -> None:
    alone = Autoscale(variant="local").suggest(blocked())
    together = Autoscale().suggest(blocked())
    # 2400 rows and 1000 pending in 60 s of 100 ms each: 5.67 processors.
    assert degrees(alone)["SlowNonFilterMid"] == degrees(together)["SlowNonFilterMid"] == 6
    # What follows sees 600 rows locally, but 3400 once the slow operator has its six tasks.
    assert alone[2].rows == 600
    assert together[2].rows == pytest.approx(3400)
    assert degrees(together)["FastFilter"] == 1


def test_an_upstream_that_is_never_critical_counts_too() -> None:
    """Kotto-Kombi 2018, ch. 5 s. 6.1: the fast operator passes all on, and shows a rise sooner."""
    rising = windows([[100.0, 200, 300, 400, 500, 600], [100.0, 100, 200, 300, 400, 500]])
    gal = Autoscale().suggest(rising)
    # 700 to 1200 rows follow at the first; the second's own line gives 4686, (10) takes 5700.
    assert gal[0].level == pytest.approx(5700 / 60_000)
    assert gal[1].rows == pytest.approx(5700)
    assert degrees(gal)["SlowNonFilterMid"] == 10
    for variant in ("critical", "local"):
        found = Autoscale(variant=variant).suggest(rising)
        assert found[1].rows == pytest.approx(4686, rel=0.001)
        assert degrees(found)["SlowNonFilterMid"] == 8


def test_a_higher_estimate_upstream_does_not_forbid_a_scale_in() -> None:
    """Ch. 5 s. 6.1: down to two tasks where its own history would leave one."""
    falling = windows([[100.0] * 6, [90.0, 80, 70, 60, 50, 40]], parallelism=(1, 8))
    assert degrees(Autoscale(variant="local").suggest(falling))["SlowNonFilterMid"] == 1
    assert degrees(Autoscale().suggest(falling))["SlowNonFilterMid"] == 1  # 600 rows are one task
    more = replace(falling, received_rows=falling.received_rows * [[1.5], [1.0]])
    assert degrees(Autoscale().suggest(more))["SlowNonFilterMid"] == 2


def test_the_end_gets_its_tasks_in_the_same_step_under_gal() -> None:
    heavy = replace(blocked(), selectivity=((), (1.0,), (1.0,), (1.0,)))
    assert degrees(Autoscale(variant="local").suggest(heavy))["SlowNonFilterEnd"] == 1
    chain = replace(
        heavy, service_time_s=np.repeat(np.array([[0.001], [0.1], [0.02], [0.1]]), 6, axis=1)
    )
    together = degrees(Autoscale().suggest(chain))
    assert together["FastFilter"] == 2  # 3400 x 20 ms / 60 s = 1.13
    assert together["SlowNonFilterEnd"] == 6


def test_straight_repeats_a_scale_out_all_the_way_down() -> None:
    """Claim S1: it gives the fast filter tasks it does not need."""
    found = degrees(Autoscale(variant="straight").suggest(blocked()))
    assert found["SlowNonFilterMid"] == 6
    assert found["FastFilter"] == 6
    assert found["SlowNonFilterEnd"] == 6


def test_straight_turns_a_scale_in_below_a_scale_out_into_nothing() -> None:
    given_ = replace(blocked(), parallelism=np.array([1, 1, 4, 8]))
    found = degrees(Autoscale(variant="straight").suggest(given_))
    assert found["FastFilter"] == 4
    assert degrees(Autoscale(variant="local").suggest(given_))["FastFilter"] == 1


def test_combine_min_takes_the_smaller_estimate() -> None:
    thrifty = Autoscale(combine="min").suggest(blocked())
    assert thrifty[2].rows == 600


def test_a_rising_trend_scales_out_before_it_is_needed() -> None:
    rising = windows([[100.0, 200.0, 300.0, 400.0, 500.0, 600.0]], parallelism=(1,))
    slow = replace(rising, service_time_s=np.full((1, 6), 0.012))
    # Now 0.72 of a processor is busy; 700 .. 1200 rows follow, 68 s of work in 60 s.
    assert degrees(Autoscale().suggest(slow))[NAMES[0]] == 2
    level = replace(slow, received_rows=np.full((1, 6), 600.0))
    assert degrees(Autoscale().suggest(level))[NAMES[0]] == 1


@pytest.mark.parametrize(
    ("level", "rises", "expected"),
    [
        (0.2, False, SCALE_IN),
        (0.2, True, 0),
        (0.5, False, 0),
        (0.5, True, 0),
        (0.9, False, 0),
        (0.9, True, SCALE_OUT),
        (1.0, False, SCALE_OUT),
        (3.0, True, SCALE_OUT),
    ],
)
def test_decision_table(level: float, rises: bool, expected: int) -> None:
    assert Thresholds(0.3, 0.8).action(level, rises) == expected


def test_degree_formula() -> None:
    assert degree(4, 0.9, SCALE_OUT, 100) == 5  # high and rising: one more
    assert degree(4, 2.1, SCALE_OUT, 100) == 9
    assert degree(4, 2.1, SCALE_OUT, 6) == 6
    assert degree(8, 0.29, SCALE_IN, 100) == 3
    assert degree(8, 0.0, SCALE_IN, 100) == 1


def test_capacity_is_the_window_over_its_mean_latency() -> None:
    """500 rows in each of four intervals of 10 s, that cost 10, 90, 10 and 90 ms, by two tasks."""
    uneven = replace(
        windows([[500.0] * 4], parallelism=(2,)), service_time_s=np.array([[0.01, 0.09] * 2])
    )
    assert task_capacities(uneven)[0] == pytest.approx(40 / 0.05)
    (found,) = Autoscale().suggest(uneven)
    assert found.level == pytest.approx(2000 / 1600)  # (4) and (6)
    assert found.wanted == 3  # (11): 2 x 1.25, rounded up


def test_the_estimate_does_not_multiply_by_the_window_twice() -> None:
    """Formula (8) as printed would let one task emit 60 times its capacity."""
    found = Autoscale().suggest(
        windows([[400.0] * 6, [400.0] * 6, [100.0] * 6, [10.0] * 6], parallelism=(1, 1, 1, 1))
    )
    assert found[1].processed(1) == pytest.approx(600)


def test_loops_are_explored_once() -> None:
    assert upstream_first(((2,), (0,), (1,))) == (0, 1, 2)
    assert upstream_first(((), (0, 3), (1,), (2,))) == (0, 1, 2, 3)
    chain = tuple((i - 1,) if i else () for i in range(5000))
    assert upstream_first(chain) == tuple(range(5000))


@given(st.integers(0, 2), st.floats(1.0, 50.0), st.floats(0.05, 0.3), st.integers(4, 12))
def test_the_best_of_three_trends_is_the_one_that_made_the_series(
    kind: int, start: float, growth: float, length: int
) -> None:
    x = np.arange(1, 2 * length + 1)
    series = [
        start + growth * start * x,
        start + growth * start * np.log(x),
        start * np.exp(growth * x),
    ][kind]
    found = best_trends(series[None, :length])
    assert KINDS[found.kind[0]] == KINDS[kind]
    assert found.next_values[0] == pytest.approx(series[length:], rel=1e-6)
    assert found.rises == (True,)


def test_a_falling_line_stops_at_zero() -> None:
    found = linear_trends(np.array([[30.0, 20.0, 10.0]]))
    assert found.next_values[0].tolist() == [0.0, 0.0, 0.0]
    assert found.rises == (False,)


def test_plus_adds_pending_rows_after_combining() -> None:
    found = AutoscalePlus().suggest(blocked())
    assert found[1].rows == pytest.approx(2400 + 1000)
    # 5.67 processors of load at a margin of 0.8 are eight tasks.
    assert found[1].wanted == 8


def test_plus_keeps_the_degree_within_its_working_interval() -> None:
    policy = AutoscalePlus(alpha=1.0, beta=0.7)
    steady = [[60.0 * 8] * 6, [48.0 * 8] * 6]  # 38.4 processors' worth of rows for the second

    def second(parallelism: int) -> int:
        return degrees(policy.suggest(windows(steady, parallelism=(1, parallelism))))[NAMES[1]]

    ideal = 480 * 6 * 0.1 / 60  # what the first emits
    assert ideal == pytest.approx(4.8)
    assert second(5) == 5
    assert second(6) == 6  # 0.7 x 6 <= 4.8
    assert second(8) == 5
    assert second(3) == 5


def test_concurrency_on_a_cpu_makes_a_task_worth_less() -> None:
    alone, beside = TaskCpu(0.9), TaskCpu(0.25, (0.75,))
    crowded = replace(
        blocked(), cpu=((), (alone, beside), (), ()), reserved_cpu=np.array([1.0, 0.25, 1.0, 1.0])
    )
    policy = AutoscalePlus(alpha=1.0)
    # (4): the task beside another can use 0.25 + 0.25 of its CPU, so all count as much.
    assert policy.suggest(crowded)[1].load == pytest.approx(2 * policy.suggest(blocked())[1].load)


def test_the_new_degree_rests_on_what_is_reserved() -> None:
    """(10): 600 rows of 100 ms in 60 s are one CPU; with a fifth of one reserved, five tasks."""
    reserved = replace(
        windows([[10.0] * 6, [100.0] * 6]), reserved_cpu=np.array([1.0, 0.2]),
        cpu=((), (TaskCpu(0.2, (0.9,)),)),
    )  # fmt: skip
    found = AutoscalePlus(alpha=1.0).suggest(reserved)[1]
    assert found.level == pytest.approx(1 / 0.3)  # (3): 0.2 + what is free, 0.1
    assert found.wanted == 5


def test_a_scale_out_adds_a_task_where_reservations_see_enough() -> None:
    whole = replace(windows([[10.0] * 6, [90.0] * 6]), cpu=((), (TaskCpu(0.2, (1.0,)),)))
    found = AutoscalePlus(alpha=0.5, cpu_reservation=1.0).suggest(whole)[1]
    assert found.level == pytest.approx(0.9 / 0.5)
    assert found.wanted == 2


def test_usable_cpu() -> None:
    assert usable_cpu(0.2, 0.5, [], alpha=0.3) == 1.0  # alone
    assert usable_cpu(0.5, 0.2, [0.4], alpha=0.3) == pytest.approx(0.75)
    assert usable_cpu(0.1, 0.2, [0.5, 0.4], alpha=0.5) == pytest.approx(0.1 + 0.05)
    assert usable_cpu(0.9, 0.2, [0.8, 0.9], alpha=0.5) == pytest.approx(0.45)


def test_unmeasured_operators_are_not_scaled_in() -> None:
    idle = windows([[1.0] * 6], parallelism=(8,))
    assert degrees(AutoscalePlus().suggest(idle))[NAMES[0]] == 1
    assert degrees(AutoscalePlus().suggest(replace(idle, known=(False,))))[NAMES[0]] == 8
    assert degrees(Autoscale().suggest(replace(idle, known=(False,))))[NAMES[0]] == 8


def test_rows_that_cost_nothing_need_one_task() -> None:
    free = replace(windows([[100.0] * 6], parallelism=(3,)), service_time_s=np.zeros((1, 6)))
    assert degrees(Autoscale().suggest(free)) == degrees(AutoscalePlus().suggest(free))
    assert math.isinf(Autoscale().suggest(free)[0].capacity)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (Autoscale, {"variant": "global"}),
        (Autoscale, {"combine": "mean"}),
        (Autoscale, {"theta_min": 0.9}),
        (AutoscalePlus, {"alpha": 0.0}),
        (AutoscalePlus, {"beta": 1.5}),
        (AutoscalePlus, {"window_s": 0.0}),
    ],
)
def test_wrong_options_are_refused(kind: type, options: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        kind(**options)


def in_a_row(number: int) -> ScalingContext:
    """One query of so many components: 100 rows/s of 20 ms each in all, 3000 rows behind."""
    names = [f"step{i}" for i in range(number)]
    seen = tuple(
        Observation(
            at_s=10.0 * at,
            period_s=10.0,
            arrival_rate_per_s=100.0,
            backlog_rows=3000.0,
            components=tuple(
                ComponentObservation(name, (name,), 100.0, 0.02 / number, 4, 20.0 / number)
                for name in names
            ),
        )
        for at in range(1, 7)
    )
    edges = tuple(pairwise(names))
    return ScalingContext(seen, ScalingPlan(dict.fromkeys(names, 4), 4), Limits(1, 64, 5.0), edges)


@pytest.mark.parametrize("number", [1, 2, 4, 8])
@pytest.mark.parametrize("policy", [Autoscale(), AutoscalePlus(window_s=60.0)])
def test_a_backlog_counts_once_however_many_components_share_the_work(
    policy: Autoscale | AutoscalePlus, number: int
) -> None:
    """6000 rows that come and 3000 that wait cost 180 s of 60."""
    (line,) = policy.decide(in_a_row(number)).reasons
    shown = "activity level 0.75," if policy.name == "autoscale" else "ideal is 3 processors"
    assert shown in line


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        (
            "autoscale",
            "theta_min=0.2 theta_max=0.7 combine=min variant=critical max_degree=8 grace_s=20s "
            "window_s=2m",
        ),
        ("autoscale_plus", "alpha=0.3 beta=0.7 combine=min max_degree=8 grace_s=20s window_s=2m"),
    ],
)
def test_every_parameter_of_the_text_is_an_option(policy: str, options: str) -> None:
    given_ = dict(text.split("=") for text in options.split())
    made = policy_of(Settings(policy=policy, policy_options=read_options(policy, given_)))
    for name, text in given_.items():
        assert str(getattr(made, name)) == {"20s": "20.0", "2m": "120.0"}.get(text, text)


def read_options(policy: str, given_: dict[str, str]) -> dict[str, object]:
    return {name: read_policy_option(policy, name, raw, name) for name, raw in given_.items()}


@pytest.mark.parametrize("policy", [Autoscale(max_degree=5), AutoscalePlus(max_degree=5)])
def test_no_operator_gets_more_than_its_maximum(policy: Autoscale | AutoscalePlus) -> None:
    overloaded = in_a_row(1)
    seen = replace(overloaded.window[-1], arrival_rate_per_s=1000.0)
    seen = replace(seen, components=(replace(seen.components[0], arrival_rate_per_s=1000.0),))
    for sharing in ("time", "space"):
        asked = replace(overloaded, window=(seen,), sharing=sharing)
        assert policy.decide(asked).plan.parallelism == {"step0": 5}


@pytest.mark.parametrize("rises", [True, False])
def test_at_exactly_one_it_is_high_and_gets_one_task_more(rises: bool) -> None:
    """Table 1 scales out at 1 whatever the trend; s. 3.3.2 calls it high, so (11) adds one."""
    action = Thresholds().action(1.0, rises)
    assert action == SCALE_OUT
    assert degree(4, 1.0, action, 100) == 5
