"""What every strategy must keep, and how they differ."""

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.admission.algorithm1 import AdmissionPlan
from penstock.admission.decide import decide_admission
from penstock.admission.drf import DeltaRateForecast
from penstock.admission.problem import NEW, AdmissionProblem, Situation
from penstock.admission.registry import STRATEGIES, strategy_named
from penstock.admission.ticks import FULL
from penstock.errors import InvalidInput
from penstock.forecast.forecaster import LastRate
from penstock.forecast.metadata import metadata_from

EVERY = pytest.mark.parametrize("name", STRATEGIES)
CAPACITY = 100.0


def problem_of(
    rates: list[list[float]],
    lane: list[int],
    queues: list[list[float]],
    metas: list[dict[str, Any]] | None = None,
    **fields: Any,
) -> AdmissionProblem:
    return AdmissionProblem(
        rates_per_s=np.array(rates, dtype=np.float64).reshape(
            len(lane), len(rates[0]) if rates else 0
        ),
        lane=np.array(lane, dtype=np.int64),
        queue_rows=np.array(queues, dtype=np.float64).reshape(
            len(queues), len(queues[0]) if queues else 0
        ),
        metadata=None if metas is None else metadata_from(metas),
        **{
            "lane_capacity_per_s": CAPACITY,
            "latency_bound_s": 5.0,
            "horizon": 3,
            "accept_below": 1.0,
            **fields,
        },
    )


def plan_of(name: str, problem: AdmissionProblem) -> AdmissionPlan:
    return decide_admission(problem, STRATEGIES[name]).plan


@st.composite
def problems(draw: st.DrawFn) -> AdmissionProblem:
    streams, lanes = draw(st.integers(0, 25)), draw(st.integers(0, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    scale = draw(st.sampled_from([0.0, 5.0, 30.0, 70.0, 130.0]))
    rates = rng.uniform(0, 1, (streams, 1)) * scale * rng.uniform(0.5, 1.5, (streams, 6))
    rates[rng.random((streams, 6)) < draw(st.sampled_from([0.0, 0.4]))] = np.nan
    metas: list[dict[str, Any]] = [
        {"greatest_rate": float(peak), "transition": "jump"} if peak < 40 else {}
        for peak in rng.uniform(0, 80, streams)
    ]
    return AdmissionProblem(
        rates_per_s=rates,
        lane=rng.integers(NEW, lanes, streams),
        queue_rows=rng.uniform(0, draw(st.sampled_from([10.0, 2000.0])), (lanes, 4)),
        lane_capacity_per_s=CAPACITY,
        latency_bound_s=5.0,
        horizon=draw(st.integers(1, 5)),
        metadata=metadata_from(metas),
        accept_below=draw(st.sampled_from([1.0, 0.8])),
        backlog_rows=draw(st.sampled_from([None, rng.uniform(0, 200, streams)])),
        drain_below=draw(st.sampled_from([None, 0.5, 0.9])),
        overload_by=draw(st.sampled_from(["either", "either", "queue"])),
    )


@EVERY
@settings(max_examples=80, deadline=None)
@given(problem=problems())
def test_the_promises_of_every_plan(name: str, problem: AdmissionProblem) -> None:
    strategy = strategy_named(name)
    situation = Situation(problem, strategy.believe(problem))
    decision = decide_admission(problem, strategy)
    plan = decision.plan
    lanes = problem.lanes + plan.new_lanes
    # Every stream is in one lane that exists.
    assert len(plan.lane) == problem.streams
    assert not len(plan.lane) or 0 <= plan.lane.min() <= plan.lane.max() < lanes
    members = np.bincount(plan.lane, minlength=lanes)
    assert (members[problem.lanes :] > 0).all()
    assert (plan.retired == np.flatnonzero(members == 0)).all()
    assert plan.lanes_in_use == np.count_nonzero(members)
    # What is believed fits, but for a stream larger than a lane, which is then alone.
    load = np.bincount(plan.lane, situation.size, lanes)
    left_alone = np.zeros(lanes, dtype=bool)
    if problem.overload_by == "queue" and strategy.keeps_assignments:
        left_alone[: problem.lanes] = ~plan.overloaded & situation.too_full
    assert ((load <= FULL) | (members == 1) | left_alone).all()
    assert plan.lower_bound <= plan.lanes_in_use or left_alone.any()
    # A lane that was left too full gets nothing on top.
    assert (
        load[left_alone] <= np.append(situation.load, np.zeros(plan.new_lanes))[left_alone]
    ).all()
    cannot = (situation.size > FULL).any() or (situation.queued > FULL).any()
    assert (decision.infeasible is not None) == bool(cannot)
    # A redirection has a cause.
    assert (
        plan.redirected == np.flatnonzero((plan.lane != problem.lane) & (problem.lane >= 0))
    ).all()
    if strategy.keeps_assignments:
        caused = plan.overloaded | plan.drained
        assert caused[problem.lane[plan.redirected]].all()
    assert decision.reasons
    assert all("\n" not in line for line in decision.reasons)


@EVERY
@settings(max_examples=30, deadline=None)
@given(problem=problems())
def test_strategies_are_pure_and_picklable(name: str, problem: AdmissionProblem) -> None:
    strategy = pickle.loads(pickle.dumps(STRATEGIES[name]))
    columns = (problem.rates_per_s.copy(), problem.lane.copy(), problem.queue_rows.copy())
    first, second = (decide_admission(problem, strategy) for _ in range(2))
    assert (first.plan.lane == second.plan.lane).all()
    assert first.reasons == second.reasons
    for before, after in zip(
        columns, (problem.rates_per_s, problem.lane, problem.queue_rows), strict=True
    ):
        assert np.array_equal(before, after, equal_nan=True)


@EVERY
@settings(max_examples=30, deadline=None)
@given(problem=problems(), seed=st.integers(0, 99))
def test_the_order_of_streams_does_not_matter(
    name: str, problem: AdmissionProblem, seed: int
) -> None:
    order = np.random.default_rng(seed).permutation(problem.streams)
    assert problem.metadata is not None
    mixed = replace(
        problem, rates_per_s=problem.rates_per_s[order], lane=problem.lane[order],
        metadata=problem.metadata.take(order),
        backlog_rows=None if problem.backlog_rows is None else problem.backlog_rows[order],
    )  # fmt: skip
    one, other = plan_of(name, problem), plan_of(name, mixed)
    assert one.lanes_in_use == other.lanes_in_use
    assert len(one.redirected) == len(other.redirected) or name == "par"
    assert one.lower_bound == other.lower_bound


@EVERY
def test_no_load_and_no_streams(name: str) -> None:
    empty = plan_of(name, problem_of([], [], [[0.0]]))
    assert (empty.lanes_in_use, empty.new_lanes, empty.lower_bound) == (0, 0, 0)
    assert empty.retired.tolist() == [0]
    idle = plan_of(name, problem_of([[0.0], [0.0]], [0, NEW], [[0.0]]))
    assert idle.lane.tolist() == [0, 0]
    first = plan_of(name, problem_of([[60.0], [60.0]], [NEW, NEW], []))
    assert sorted(first.lane.tolist()) == [0, 1]


def fig_5() -> AdmissionProblem:
    """In the spirit of fig. 5: three lanes, one overloaded, one stream about to jump, two new."""
    rates = [[40.0] * 4, [50.0] * 4, [30.0] * 4, [60.0] * 4, [70.0] * 4, [0.0], [0.0]]
    rates[5:] = [[np.nan] * 4] * 2
    metas: list[dict[str, Any]] = [{} for _ in range(7)]
    metas[2] = {"greatest_rate": 60, "transition": "jump"}
    metas[5], metas[6] = {"expected_rate": 35}, {"expected_rate": 25}
    return problem_of(rates, [0, 0, 0, 1, 2, NEW, NEW], [[0.0], [0.0], [0.0]], metas)


def test_meta_data_decides_who_leaves() -> None:
    problem = fig_5()
    assert plan_of("drf-m", problem).redirected.tolist() == [2]  # will jump from 30 to 60
    assert plan_of("ard", problem).redirected.tolist() == [1]  # the fastest
    assert plan_of("ari", problem).redirected.tolist() == [2]  # the slowest
    plan = plan_of("drf-m", problem)
    assert plan.lane[5] == 1  # the new ones fill what lanes 1 and 2 have left
    assert plan.lane[6] == 2
    assert plan.new_lanes == 1


def test_of_streams_that_burst_by_chance_the_idle_ones_do_not_leave_first() -> None:
    meta = {"greatest_rate": 40.0, "least_rate": 0.0, "burst": 8.0, "idle": 8.0}
    rates = [[40.0] * 4] * 3 + [[0.0] * 4] * 3
    problem = problem_of(rates, [0] * 6, [[0.0]], [meta] * 6)
    redirected = plan_of("drf-m", problem).redirected
    assert len(redirected) == 2
    assert set(redirected.tolist()) <= {0, 1, 2}


def test_meta_data_keeps_what_a_forecast_would_move() -> None:
    rising = [[10.0 + 6 * t for t in range(6)], [50.0] * 6]
    declared = [{"greatest_rate": 45.0, "transition": "trend"}, {}]
    assert len(plan_of("drf", problem_of(rising, [0, 0], [[0.0]], declared)).redirected) == 1
    assert len(plan_of("drf-m", problem_of(rising, [0, 0], [[0.0]], declared)).redirected) == 0


def test_forecasts_move_before_it_is_too_late_and_last_rates_after() -> None:
    rising = [[10.0 + 6 * t for t in range(6)], [50.0] * 6]
    problem = problem_of(rising, [0, 0], [[0.0]])
    assert plan_of("drf", problem).redirected.tolist() == [0]  # the one that rises
    assert len(plan_of("ard", problem).redirected) == 0


def test_few_fast_streams_or_many_slow_ones() -> None:
    rates = [[50.0], [40.0], [10.0], [10.0], [10.0], [10.0]]
    problem = problem_of(rates, [0] * 6, [[0.0]])
    assert len(plan_of("ard", problem).redirected) == 1
    assert len(plan_of("ari", problem).redirected) == 3


def test_only_par_disturbs_lanes_that_are_well() -> None:
    problem = problem_of([[50.0], [40.0], [45.0], [45.0]], [2, 2, 1, 1], [[0.0]] * 3)
    moved = {name: len(plan_of(name, problem).redirected) for name in STRATEGIES}
    assert moved == {"drf-m": 0, "drf": 0, "ard": 0, "ari": 0, "par": 3}


def test_a_late_lane_takes_nothing_in_though_its_rates_are_low() -> None:
    problem = problem_of([[20.0], [20.0], [30.0]], [0, 1, NEW], [[0, 900, 900, 900], [0] * 4])
    for name in ("drf-m", "drf", "ard", "ari"):
        plan = plan_of(name, problem)
        assert plan.overloaded.tolist() == [True, False]
        assert plan.lane.tolist() == [0, 1, 1]


LATE = [5_000.0] * 4  # 50 s of rows at the capacity of a lane


@pytest.mark.parametrize("name", ["drf-m", "drf", "ard", "ari"])
def test_a_late_lane_is_relieved_though_its_load_fits(name: str) -> None:
    problem = problem_of([[20.0]] * 4 + [[1.0]], [0] * 4 + [1], [LATE, [0.0] * 4], accept_below=0.9)
    decision = decide_admission(problem, STRATEGIES[name])
    assert decision.plan.lane.tolist().count(0) == 1, "one stays, as a lane serves its own queue"
    assert decision.plan.new_lanes == 0
    assert decision.infeasible is not None
    assert "'lane-1': its queue takes 50 s of 5 s allowed" in decision.infeasible


def test_a_lane_gives_away_what_keeps_it_from_serving_its_queue_in_time() -> None:
    # 60 of 100 rows a second come, and 300 rows that wait need 60 more to be gone in 5 s.
    problem = problem_of([[20.0]] * 3, [0] * 3, [[300.0] * 4])
    decision = decide_admission(problem, STRATEGIES["ard"])
    assert len(decision.plan.redirected) == 1
    assert decision.infeasible is None
    assert "its streams need 60.0% and its queue 60.0% of its capacity" in decision.reasons[1]


def test_what_waits_at_a_stream_needs_room_and_goes_with_it() -> None:
    rates, waiting = [[20.0]] * 3, np.array([300.0, 0.0, 0.0])
    problem = problem_of(rates, [0] * 3, [[300.0] * 4], backlog_rows=waiting)
    decision = decide_admission(problem, STRATEGIES["ard"])
    assert len(decision.plan.redirected) == 1
    plan = plan_of("ard", replace(problem, lane=np.full(3, NEW), queue_rows=np.empty((0, 0))))
    assert plan.lanes_in_use == 2
    assert (plan.total_rate_per_s, plan.backlog_per_s) == (60.0, 60.0)
    assert decision.infeasible is None
    too_much = replace(problem, backlog_rows=np.array([450.0, 0.0, 0.0]))
    said = decide_admission(too_much, STRATEGIES["ard"]).infeasible
    assert said is not None
    assert "'stream-1' with 110, of which 90 for rows that wait" in said


def test_queue_samples_are_weighed_towards_the_newest() -> None:
    def is_late(samples: list[float]) -> bool:
        return bool(plan_of("drf-m", problem_of([[20.0]], [0], [samples])).overloaded[0])

    assert is_late([0, 0, 900, 900, 900])
    assert not is_late([900, 900, 0, 0, 0, 0])
    assert not is_late([0, 0, 0, 900])  # one bad sample is not yet an overload
    assert not is_late([])


def test_load_counts_as_overload_unless_only_queues_shall() -> None:
    problem = problem_of([[60.0], [60.0]], [0, 0], [[0.0]])
    assert len(plan_of("ard", problem).redirected) == 1
    by_queue = replace(problem, overload_by="queue")
    assert len(plan_of("ard", by_queue).redirected) == 0
    late = replace(by_queue, queue_rows=np.array([[900.0]]))
    assert len(plan_of("ard", late).redirected) == 1


def test_lanes_drain_only_where_asked_and_with_room_to_spare() -> None:
    problem = problem_of([[20.0], [30.0], [10.0]], [0, 1, 2], [[0.0]] * 3)
    assert plan_of("drf-m", problem).lanes_in_use == 3
    drained = plan_of("drf-m", replace(problem, drain_below=0.7))
    assert drained.lanes_in_use == 1
    assert len(drained.retired) == 2
    assert plan_of("drf-m", replace(problem, drain_below=0.4)).lanes_in_use == 2


def test_fewer_lanes_drain_when_the_room_is_in_pieces() -> None:
    # In sum two lanes would do, but nothing fits beside the largest stream.
    problem = problem_of([[55.0], [46.0], [46.0], [46.0]], [0, 1, 2, 3], [[0.0]] * 4)
    plan = plan_of("ard", replace(problem, drain_below=1.0))
    assert plan.lanes_in_use == 3
    assert len(plan.redirected) == 1


def test_a_lane_is_filled_to_its_level_and_no_further() -> None:
    rates = [[40.0], [45.0], [10.0]]
    assert plan_of("ard", problem_of(rates, [0, NEW, NEW], [[0.0]])).lanes_in_use == 1
    spare = problem_of(rates, [0, NEW, NEW], [[0.0]], accept_below=0.9)
    assert plan_of("ard", spare).lanes_in_use == 2


def test_another_forecaster_can_be_plugged_in() -> None:
    rising = [[10.0 + 6 * t for t in range(6)], [50.0] * 6]
    plan = decide_admission(problem_of(rising, [0, 0], [[0.0]]), DeltaRateForecast(LastRate())).plan
    assert len(plan.redirected) == 0


def test_unknown_names_and_bad_limits_are_one_sentence() -> None:
    with pytest.raises(InvalidInput, match="strategy is 'bfd'; allowed: drf-m, drf, ard, ari, par"):
        strategy_named("bfd")
    with pytest.raises(InvalidInput, match="lane_capacity is 0"):
        problem_of([], [], [], lane_capacity_per_s=0)
    with pytest.raises(InvalidInput, match="horizon is 0"):
        plan_of("drf", problem_of([[1.0]], [NEW], [], horizon=0))
