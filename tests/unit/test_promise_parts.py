"""What the policy promise is made of, against closed forms and brute force."""

import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.config import Settings
from penstock.control.act_costs import ActCosts
from penstock.control.experience import with_experience
from penstock.control.history.store import HistoryStore
from penstock.control.records import RunRecord
from penstock.forecast.calendar_regression import CalendarRegression
from penstock.forecast.load_ahead import load_ahead, weighted_quantiles
from penstock.forecast.paths import (
    USUAL_FORECASTERS,
    Calendar,
    LastValue,
    Mean,
    Seasonal,
    Trend,
    evenly,
)
from penstock.forecast.seasonal_regression import SeasonalRegression, left_out
from penstock.forecast.seasons import season_of
from penstock.model.batch_overhead import BatchOverhead
from penstock.model.decision import ActPrice, Limits, ScalingPlan
from penstock.model.observation import (
    BatchObservation,
    ComponentObservation,
    LaneObservation,
    LatencyObservation,
    NodeObservation,
    Observation,
    SourceObservation,
)
from penstock.scaling.models.batch_course import (
    Capacities,
    RatePath,
    Work,
    follow,
    steady_share_s,
)
from penstock.scaling.models.contention import learn_contention
from penstock.scaling.policies.policy import ScalingContext
from penstock.scaling.policies.promise import Promise
from penstock.scaling.policies.promise_costs import settled
from penstock.scaling.policies.promise_inputs import planned_level
from penstock.scaling.policies.promise_needs import planned_bound_s
from penstock.scaling.policies.promise_plan import Prices, cheapest_course

# Forecasts


def test_a_trend_is_followed_and_a_mean_is_not() -> None:
    line = 10.0 + 2.0 * np.arange(200)
    ahead = Trend(5).paths(line, np.arange(1, 4))[-1]
    assert ahead == pytest.approx([line[-1] + 2, line[-1] + 4, line[-1] + 6], rel=1e-3)
    assert Mean().paths(line[:5], np.arange(1, 3))[-1] == pytest.approx([14.0, 14.0])


def test_a_season_is_found_and_one_season_ago_is_expected() -> None:
    moments = np.arange(400)
    series = 100 + 50 * np.sin(2 * np.pi * moments / 48)
    assert season_of(series) == 48
    assert Seasonal().paths(series, np.arange(1, 5))[-1] == pytest.approx(
        100 + 50 * np.sin(2 * np.pi * (moments[-1] + np.arange(1, 5)) / 48), rel=0.02
    )


def test_a_regression_finds_what_is_of_the_season_and_what_of_the_present() -> None:
    moments = np.arange(480)
    chance = np.random.default_rng(3)
    level = 10 * np.cumsum(chance.normal(size=480)) / 5
    series = 300 + 200 * (moments % 48 > 30) + level
    steps = np.array([1, 4])
    expected = SeasonalRegression().paths(series, steps)
    known = np.isfinite(expected[:, 0]) & (moments < 470)
    off = [np.abs(expected[known, c] - series[moments[known] + h]) for c, h in enumerate(steps)]
    plain = Seasonal().paths(series, steps)
    before = [np.abs(plain[known, c] - series[moments[known] + h]) for c, h in enumerate(steps)]
    assert np.mean(off[0]) < 0.8 * np.mean(before[0])
    assert np.mean(off[1]) < 0.9 * np.mean(before[1])


def test_a_regression_finds_the_same_day_of_the_week() -> None:
    """Two days of seven are calmer: early on the first day of either kind, it knows which it is."""
    moments, chance = np.arange(24 * 22), np.random.default_rng(4)
    busy = np.where((moments // 24) % 7 < 5, 1.0, 0.75)
    series = 100 + 300 * busy * np.sin(np.pi * (moments % 24) / 24) + chance.normal(0, 5, 24 * 22)
    early = [24 * day + 4 for day in (14, 19, 21)]
    off = [
        float(SeasonalRegression().paths(series[: now + 1], np.array([6]))[-1, 0]) - series[now + 6]
        for now in early
    ]
    assert np.abs(off).mean() < 15  # 25 by the days just before


def test_a_moment_of_the_past_is_left_out_of_its_own_forecast() -> None:
    chance = np.random.default_rng(1)
    features = chance.normal(size=(61, 5))
    came = features[:60] @ np.arange(5.0) + chance.normal(size=60)
    expected = left_out(features, came)
    others = np.arange(60) != 7
    again = np.concatenate([features[:60][others], features[[7]]])
    assert expected[7] == pytest.approx(left_out(again, came[others])[-1], abs=0.02)


@pytest.mark.parametrize("series", [np.full(200, 3.0), np.arange(200.0)])
def test_what_has_no_season_gets_none(series: np.ndarray) -> None:
    assert season_of(series) is None
    assert np.isnan(Seasonal().paths(series, np.arange(1, 4))).all()


def test_the_calendar_brings_what_is_usual_to_the_present_level() -> None:
    usual = np.concatenate([np.full(100, 10.0), np.full(10, 40.0)])
    expected = Calendar(tuple(usual)).paths(np.full(100, 20.0), np.arange(1, 4))[-1]
    assert expected == pytest.approx([80.0, 80.0, 80.0])


def test_a_regression_learns_how_far_this_week_is_like_the_others() -> None:
    """A load that rises half as far as usual, on a level that wanders: known after minutes."""
    moments, chance = np.arange(260), np.random.default_rng(6)
    usual = 200 + 100 * np.sin(2 * np.pi * moments / 40)
    level = np.cumsum(chance.normal(0, 2, 260))
    series = (200 + 0.5 * (usual - 200) + level)[:240]
    steps = np.array([4, 12])
    known = slice(120, 228)
    came = series[np.arange(240)[known, None] + steps]
    off = [
        np.abs(forecaster.paths(series, steps)[known] - came).mean(axis=0)
        for forecaster in (CalendarRegression(tuple(usual)), Calendar(tuple(usual)), LastValue())
    ]
    assert (off[0] < 0.7 * off[1]).all()
    assert (off[0] < 0.7 * off[2]).all()
    short = CalendarRegression(tuple(usual)).paths(series[:25], steps)
    assert np.isnan(short).all(), "too little was seen"
    gap = np.where(moments == 100, np.nan, usual)
    assert np.isnan(CalendarRegression(tuple(gap)).paths(series, steps)).all()


def test_what_admission_foresees_is_planned_for_and_nothing_else() -> None:
    """Streams that tell when they burst: executors come before they do, and only then."""
    rates = np.full(160, 200.0)
    for start in (23, 57, 102, 152):
        rates[start : start + 8] = 2000.0

    def decided(now: int, told: bool) -> int:
        window = tuple(
            replace(
                seen(4, 0.01, at * 5.0),
                arrival_rate_per_s=float(rates[at]),
                components=(ComponentObservation("a", ("a",), float(rates[at]), 0.01, 4, 1.0),),
                sources=(admitted(float(rates[at]), float(rates[at + 4])),) if told else (),
            )
            for at in range(now + 1)
        )
        context = ScalingContext(
            window,
            ScalingPlan({"a": 4}, 4),
            Limits(1, 64, 5.0),
            act_price=ActPrice(15.0),
        )
        return Promise(step=2).decide(context).plan.processors

    assert 20 <= decided(148, told=True) < 64
    assert decided(140, told=True) <= 4 < decided(140, told=False)


def admitted(now_per_s: float, soon_per_s: float) -> SourceObservation:
    lane = LaneObservation("lane", 1, 0, now_per_s)
    return SourceObservation(
        "cabs", 1, 0, 0, 0, 0, 0, lanes=(lane,), foreseen_rate_per_s=soon_per_s,
        foreseen_horizon_s=20.0,
    )  # fmt: skip


def test_a_rush_of_earlier_days_is_foreseen_by_the_history(tmp_path: Path) -> None:
    """Each day at 08:00 the rate jumps; on the third day it is expected before it comes."""
    day_s, rush_s = 86_400.0, 8 * 3600.0

    def rate(at_s: float) -> float:
        return 400.0 if rush_s <= at_s % day_s < rush_s + 3600 else 100.0

    store = HistoryStore(f"sqlite:///{tmp_path}/h.sqlite")
    with store:
        for day in (3, 4):
            run = store.begin(RunRecord("road", "promise", day * day_s, 60.0, 5.0, 2, False))
            for at_s in np.arange(day * day_s, (day + 1) * day_s, 300.0):
                run.observed(Observation(float(at_s), 60.0, rate(float(at_s)), 0.0))
            run.flush()
            run.end((day + 1) * day_s)
        learnt = with_experience(Settings(), store, "road", 5.0).policy_options["calendar"]
    now_s = 5 * day_s + rush_s - 600.0
    moments = now_s + 60.0 * np.arange(-120, 30)
    ahead = load_ahead(
        np.full(121, 100.0), (1, 10, 20, 29), 0.9, (Calendar(tuple(learnt.usual_per_s(moments))),),
        20,
    )  # fmt: skip
    assert ahead.expected_per_s[0] == pytest.approx(100.0, rel=0.01)
    assert ahead.expected_per_s[2] > 350


@pytest.mark.parametrize("level", [0.9, 0.99])
def test_the_rate_stays_below_its_quantile_as_often_as_was_said(level: float) -> None:
    """One moment after another over loads that drift, swing and scatter."""
    kept = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        drift = np.cumsum(rng.normal(0, 2, 1200))
        series = np.maximum(50.0, 400 + drift + 40 * np.sin(np.arange(1200) / 30))
        series *= np.exp(rng.normal(0, 0.05, 1200))
        for now in range(300, 1190, 6):
            ahead = load_ahead(series[: now + 1], (1, 2, 4), level, USUAL_FORECASTERS, 4)
            kept.append(series[now + 4] <= ahead.upper_per_s(level)[-1])
    assert np.mean(kept) == pytest.approx(level, abs=0.05 if level < 0.95 else 0.015)


def test_the_better_forecaster_is_chosen_by_its_record() -> None:
    up_and_down = 100.0 + 2.0 * np.abs(np.arange(600) % 400 - 200)
    ahead = load_ahead(up_and_down, (1, 2, 3), 0.9, (LastValue(), Trend(5)), 3)
    assert "trend" in ahead.forecaster
    flat = np.random.default_rng(1).normal(100, 10, 400)
    ahead = load_ahead(flat, (1, 2, 3), 0.9, (LastValue(), Mean()), 3)
    assert "mean" in ahead.forecaster


def test_a_climb_is_seen_before_the_farthest_step_of_a_plan_has_come() -> None:
    """Of 60 steps that are planned none is over yet; the near ones tell who is right."""
    climbs = np.array([120, 118, 122, 119, 121, 138, 165, 192, 219.0])
    steps = (1, 2, 3, 4, 6, 9, 13, 19, 28, 41, 60)
    ahead = load_ahead(climbs, steps, 0.99, USUAL_FORECASTERS, 4)
    assert "trend" in ahead.forecaster
    assert ahead.expected_per_s[3] == pytest.approx(219 + 4 * 27, rel=0.15)
    assert ahead.upper_per_s(0.99)[3] > 219 + 4 * 27


def test_of_values_that_are_not_known_a_quantile_takes_none() -> None:
    values = np.array([[1.0, 5.0], [2.0, math.nan], [3.0, math.nan], [4.0, 6.0]])
    assert weighted_quantiles(values, np.ones(4), 0.5).tolist() == [3.0, 6.0]
    assert weighted_quantiles(values, np.ones(4), 0.2).tolist() == [1.0, 5.0]


@given(
    values=st.lists(st.floats(-10, 10), min_size=1, max_size=30),
    level=st.floats(0.05, 0.95),
)
def test_a_weighted_quantile_holds_the_level(values: list[float], level: float) -> None:
    column = np.array(values)[:, None]
    found = float(weighted_quantiles(column, np.ones(len(values)), level)[0])
    below = sum(value <= found for value in values)
    assert below >= min(len(values), level * (len(values) + 1) - 1e-9)


def test_measurements_at_uneven_moments_are_put_at_even_ones() -> None:
    assert evenly([0.0, 5.0, 15.0], [1.0, math.nan, 4.0], 5.0) == pytest.approx([1, 2, 3, 4])
    assert len(evenly([], [], 5.0)) == 0


# Batches


def one_course(rate: float, processors: float, waiting: float = 0.0, **work: float) -> float:
    course = follow(
        RatePath(np.full(60, rate), 5.0),
        Work(BatchOverhead(0.25), 0.01, **work),
        Capacities(((0.0, np.array([processors])),)),
        waiting, 5.0, 250.0,
    )  # fmt: skip
    return float(course.latency_s[0])


@pytest.mark.parametrize("used", [0.2, 0.5, 0.8])
def test_batches_of_a_steady_rate_settle_at_the_closed_form(used: float) -> None:
    rate, processors = used * 400, 4.0
    closed = 2 * 0.25 / (1 - used)
    work = Work(BatchOverhead(0.25), 0.01)
    assert float(steady_share_s(work, np.array([rate]), np.array([processors]))[0]) == (
        pytest.approx(closed)
    )
    assert one_course(rate, processors, waiting=1.5 * rate * closed / 2) == (
        pytest.approx(closed, rel=0.1)
    )


def test_an_interval_adds_the_rows_of_an_interval() -> None:
    work = Work(BatchOverhead(0.25), 0.01, interval_s=10.0)
    found = steady_share_s(work, np.array([200.0]), np.array([4.0]))
    assert float(found[0]) == pytest.approx(10.0 + 5.25)


def test_rows_that_pile_up_are_late_and_processors_that_come_in_time_save_them() -> None:
    path = RatePath(np.full(8, 600.0), 5.0)
    work = Work(BatchOverhead(0.25), 0.01)
    capacity = Capacities(((0.0, np.array([4.0, 4.0, 8.0])), (10.0, np.array([4.0, 12.0, 8.0]))))
    course = follow(path, work, capacity, 0.0, 5.0, 40.0)
    late = course.late_rows / course.rows
    assert late[0] > 0.5 > late[1] > late[2] == 0
    assert course.late_row_s[0] > course.late_row_s[1]


def by_steps(rates: list[float], step_s: float, processors: int, bound_s: float) -> float:
    """Share of late rows by following each batch of a Python loop over single rows."""
    times = np.concatenate(
        [i * step_s + (np.arange(int(r * step_s)) + 0.5) / r for i, r in enumerate(rates)]
    )
    late, start, taken = 0, 0.125, 0
    while taken < len(times):
        upto = int(np.searchsorted(times, start))
        end = start + 0.25 + 0.01 * (upto - taken) / processors
        late += int((end - times[taken:upto] > bound_s).sum())
        start, taken = end, upto
    return late / len(times)


@pytest.mark.parametrize("seed", range(4))
def test_the_share_of_late_rows_is_that_of_single_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rates = [float(rate) for rate in rng.integers(100, 900, 8)]
    sizes = np.array([3.0, 4.0, 6.0, 8.0])
    course = follow(
        RatePath(np.array(rates), 5.0), Work(BatchOverhead(0.25), 0.01),
        Capacities(((0.0, sizes),)), 0.0, 2.0, 40.0,
    )  # fmt: skip
    for size, late, rows in zip(sizes, course.late_rows, course.rows, strict=True):
        assert late / rows == pytest.approx(by_steps(rates, 5.0, int(size), 2.0), abs=0.05)


# The plan over the next steps


def brute_force(now: int, needs: list[int], prices: Prices, lasts: list[int]) -> float:
    best = math.inf
    for sizes in itertools.product(range(1, 5), repeat=len(needs)):
        if all(size >= need for size, need in zip(sizes, needs, strict=True)):
            best = min(best, cost(now, sizes, prices, lasts))
    return best


def cost(now: int, sizes: tuple[int, ...], prices: Prices, lasts: list[int]) -> float:
    steps = list(itertools.pairwise((now, *sizes)))
    acts = prices.act * sum(a != b for a, b in steps)
    starts = prices.start * sum(max(0, b - a) for a, b in steps)
    return sum(s * n for s, n in zip(sizes, lasts, strict=True)) + acts + starts


@given(
    now=st.integers(1, 4),
    steps=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3)), min_size=2, max_size=5),
    act=st.floats(0, 6),
    start=st.floats(0, 4),
)
def test_no_course_is_cheaper(
    now: int, steps: list[tuple[int, int]], act: float, start: float
) -> None:
    needs, lasts, prices = [n for n, _ in steps], [last for _, last in steps], Prices(act, start)
    found = cheapest_course(now, np.array(needs), prices, np.array(lasts))
    assert all(size >= need for size, need in zip(found, needs, strict=True))
    assert cost(now, tuple(found.tolist()), prices, lasts) == pytest.approx(
        brute_force(now, needs, prices, lasts)
    )


def test_an_executor_that_is_needed_again_within_its_start_up_is_kept() -> None:
    soon, later = np.array([1, 1, 3]), np.array([1, 1, 1, 1, 1, 3])
    assert cheapest_course(3, soon, Prices(act=0.0, start=2.5)).tolist() == [3, 3, 3]
    assert cheapest_course(3, later, Prices(act=0.0, start=2.5))[0] == 1


def test_a_need_that_wavers_changes_nothing_and_a_change_goes_all_the_way() -> None:
    needs, free = np.array([4, 4]), Prices(act=0.0)
    assert cheapest_course(3, needs, free, enough=np.array([3, 3])).tolist() == [3, 3]
    assert cheapest_course(2, needs, free, enough=np.array([3, 3])).tolist() == [4, 4]


# What a run teaches


def served(in_time: float, periods: int) -> list[Observation]:
    latency = LatencyObservation(1000, 1.0, 2.0, 3.0, in_time)
    return [replace(seen(4, 0.01, 5.0 * at), latency=latency) for at in range(periods)]


def test_the_level_of_the_load_follows_how_many_were_late() -> None:
    assert planned_level([], 0.99) == pytest.approx(0.99)
    assert planned_level(served(1.0, 6), 0.99) == pytest.approx(0.99, abs=0.005)
    assert planned_level(served(1.0, 60), 0.99) > 0.95
    assert planned_level(served(1.0, 20_000), 0.99) == pytest.approx(0.7, abs=0.02)
    assert planned_level(served(0.99, 2000), 0.99) == pytest.approx(0.99)
    assert planned_level(served(0.9, 2000), 0.99) == pytest.approx(0.995)
    assert planned_level(served(1.0, 2000), 0.8) == 0.5


def seen(processors: int, row_s: float, at_s: float = 0.0) -> Observation:
    part = ComponentObservation("a", ("a",), 100.0, row_s, processors, 1.0)
    nodes = (NodeObservation("n", processors, 1.0),) if processors else ()
    return Observation(at_s, 5.0, 100.0, 0.0, components=(part,), nodes=nodes)


def test_contention_is_learnt_from_the_processors_a_run_has_had() -> None:
    window = [seen(k, 0.01 * (1 + 0.1 * (k - 1))) for k in (2, 4, 8) for _ in range(10)]
    assert learn_contention(window) == pytest.approx(0.1)
    assert learn_contention([seen(k, 0.01) for k in (2, 4, 8) for _ in range(10)]) == pytest.approx(
        0
    )
    assert learn_contention([seen(2, 0.01)] * 50) == 0
    assert learn_contention([replace(one, part_of_cluster=True) for one in window]) == 0


def test_start_up_is_measured_from_the_request_to_the_first_sight() -> None:
    costs = ActCosts(slots=2)
    assert costs.expected == ActPrice()
    costs.asked(100.0, 2, 6)
    assert costs.saw(seen(2, 0.01, 105.0)) == ()
    assert costs.saw(seen(6, 0.01, 115.0)) == ()
    (paid,) = costs.saw(seen(6, 0.01, 120.0))
    assert costs.expected.start_up_s == 15.0
    assert paid.numbers["foretold_executor_seconds"] == 2 * 20.0  # nothing was known yet
    assert paid.numbers["executor_seconds"] == 2 * 15.0
    costs.asked(200.0, 6, 8)
    costs.asked(205.0, 8, 4)  # given up before it came
    costs.saw(seen(4, 0.01, 210.0))
    costs.saw(seen(4, 0.01, 215.0))
    costs.asked(300.0, 4, 8)
    costs.saw(seen(8, 0.01, 310.0))
    (paid,) = costs.saw(seen(8, 0.01, 315.0))
    assert paid.numbers["foretold_executor_seconds"] == 2 * 15.0
    assert paid.numbers["executor_seconds"] == 2 * 10.0
    assert costs.expected.start_up_s == 15.0


def test_a_pause_is_what_batches_take_longer_beside_their_rows() -> None:
    def batch(processors: int, at_s: float, length_s: float, overhead_s: float) -> Observation:
        batches = BatchObservation(4, length_s, overhead_s, 100.0)
        return replace(seen(processors, 0.01, at_s), batches=batches)

    costs = ActCosts(slots=1)
    for period in range(12):
        costs.saw(batch(4, 5.0 * period, 1.0, 0.3))
    costs.asked(60.0, 4, 2)
    costs.saw(batch(2, 65.0, 9.0, 0.9))  # twice the rows for each, and a pause of 0.6 s
    (paid,) = costs.saw(batch(2, 70.0, 9.0, 0.3))
    assert paid.numbers["pause_s"] == pytest.approx(0.6)
    assert paid.numbers["executor_seconds"] == pytest.approx(2 * 5.0 + 4 * 0.6)
    assert "0.6" in paid.what
    assert costs.expected == ActPrice(None, 0.0, 5.0)  # who is let go takes no cores
    for at_s, overhead_s in ((80.0, 1.5), (100.0, 0.8)):
        costs.asked(at_s, 2, 4)
        costs.saw(batch(4, at_s + 5, 9.0, overhead_s))
        costs.saw(batch(4, at_s + 10, 9.0, 0.3))
        costs.asked(at_s + 12, 4, 2)
        costs.saw(batch(2, at_s + 15, 9.0, 0.3))
        costs.saw(batch(2, at_s + 18, 9.0, 0.3))
    assert costs.expected.pause_s == pytest.approx(1.2)  # the longest, not the middle of all acts


def test_what_batches_cost_is_not_learnt_while_an_executor_starts() -> None:
    def seen(at_s: float, names: str) -> Observation:
        nodes = tuple(NodeObservation(name, 2, 0.0) for name in names)
        return Observation(at_s, 5.0, 1.0, 0.0, nodes=nodes)

    window = [seen(0, "a"), seen(5, "a"), seen(10, "ab"), seen(15, "ab"), seen(20, "ab"),
              seen(25, "ab"), seen(30, "b")]  # fmt: skip
    assert [one.at_s for one in settled(window)] == [0, 5, 25, 30]
    assert settled(window[:1]) == window[:1]
    assert settled([]) == []


@pytest.mark.parametrize(("pause_s", "planned_s"), [(0.0, 9.0), (0.5, 9.0), (2.0, 8.0), (8.0, 5.0)])
def test_room_is_left_for_the_pause_of_the_next_change(pause_s: float, planned_s: float) -> None:
    context = ScalingContext(
        (), ScalingPlan({}, 2), Limits(1, 8, 10.0), act_price=ActPrice(6.0, pause_s)
    )
    assert planned_bound_s(context, 0.9) == pytest.approx(planned_s)


@pytest.mark.parametrize(("interval_s", "planned_s"), [(0.0, 9.0), (4.0, 9.396), (20.0, 10.0)])
def test_the_wait_for_an_interval_is_known_and_needs_no_room(
    interval_s: float, planned_s: float
) -> None:
    context = ScalingContext((), ScalingPlan({}, 2), Limits(1, 8, 10.0), act_price=ActPrice(6.0))
    assert planned_bound_s(context, 0.9, interval_s) == pytest.approx(planned_s)


@pytest.mark.parametrize(("rate_per_s", "goes"), [(200.0, True), (16000.0, False)])
def test_one_of_few_executors_that_is_not_needed_goes_and_one_of_many_stays(
    rate_per_s: float, goes: bool
) -> None:
    """The same executor-seconds are worth a change of a small cluster, and not of a large one."""

    def decided(now: int, **options: float) -> int:
        window = tuple(
            replace(
                seen(now, 0.01, at * 5.0),
                arrival_rate_per_s=rate_per_s,
                components=(ComponentObservation("a", ("a",), rate_per_s, 0.01, now, 1.0),),
            )
            for at in range(200)
        )
        plan, price = ScalingPlan({"a": now}, now), ActPrice(15.0)
        context = ScalingContext(window, plan, Limits(1, 200, 5.0), act_price=price)
        return Promise(**options).decide(context).plan.processors

    needed = decided(200, act_price=0.0)
    assert (decided(needed + 1) == needed) is goes


def test_what_is_behind_is_load_that_a_shared_cluster_is_asked_for() -> None:
    """100 rows/s and 3,000 that wait: two processors keep up with the first alone."""
    calm = tuple(seen(2, 0.01, 5.0 * at) for at in range(30))
    late = (*calm[:-1], replace(calm[-1], backlog_rows=3000.0))
    limits, price = Limits(1, 8, 5.0), ActPrice(15.0)
    expected = [
        Promise()
        .decide(ScalingContext(window, ScalingPlan({"a": 2}, 2), limits, act_price=price))
        .expected_s
        for window in (calm, late)
    ]
    assert expected[0][2] < 5.0
    assert expected[1][2] == math.inf
    assert expected[1][4] < 5.0


@pytest.mark.parametrize("waiting", [0.0, 3000.0])
@pytest.mark.parametrize("rate_per_s", [0.0, 100.0])
@pytest.mark.parametrize(("processors", "sharing"), [(0, "time"), (2, "time"), (2, "space")])
def test_executors_that_start_at_once_leave_the_bound_to_catch_up_within(
    processors: int, rate_per_s: float, waiting: float, sharing: Literal["time", "space"]
) -> None:
    """No start-up and no processors are no divisors: the bound is, and one that will come."""
    calm = tuple(seen(processors, 0.01, 5.0 * at) for at in range(30))
    newest = replace(calm[-1], arrival_rate_per_s=rate_per_s, backlog_rows=waiting)
    context = ScalingContext(
        (*calm[:-1], newest), ScalingPlan({"a": processors}, processors), Limits(1, 16, 5.0),
        sharing=sharing, act_price=ActPrice(0.0),
    )  # fmt: skip
    decision = Promise().decide(context)
    assert 1 <= decision.plan.processors <= 16
    if sharing == "time" and waiting and rate_per_s:
        # 3,000 rows within 5 s beside 100 rows/s are 700 a second: with eight it cannot keep up.
        assert decision.expected_s[7] == math.inf
        assert math.isfinite(decision.expected_s[8])
