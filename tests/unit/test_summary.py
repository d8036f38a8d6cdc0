"""What a run came to, from its periods."""

import math

import pytest

from penstock.cli.run import summary_lines
from penstock.control.actions import Outcome, SetExecutors
from penstock.control.recent import MOST_STEPS, RecentSteps
from penstock.control.step import Step
from penstock.control.summary import MOST_DECISIONS, RunTally
from penstock.model.observation import LatencyObservation, NodeObservation, Observation


def period(nodes: int, latency: LatencyObservation | None) -> Observation:
    present = tuple(NodeObservation(str(n), 2, 0.0) for n in range(nodes))
    return Observation(10.0, 5.0, 100.0, 0.0, nodes=present, latency=latency)


def step(at_s: float, seen: Observation, wanted: int = 1, done: bool = False) -> Step:
    outcome = Outcome(SetExecutors(wanted), True, "1 -> 3 executors") if done else None
    return Step(at_s, seen, executors_before=1, executors_wanted=wanted, outcome=outcome)


def test_results_weigh_by_their_number_and_executors_by_time() -> None:
    tally = RunTally()
    tally.take(step(5.0, period(1, LatencyObservation(100, 2.0, 3.0, 4.0, 1.0)), 3, done=True))
    tally.take(step(10.0, period(3, LatencyObservation(300, 6.0, 8.0, 9.0, 0.2))))
    tally.take(step(15.0, period(2, None)))
    summary = tally.summary(5.0, executors_min=1, executors_max=4)
    assert summary.results == 400
    assert summary.in_time_share == pytest.approx((100 + 60) / 400)
    assert summary.latency_mean_s == pytest.approx(5.0)
    assert summary.latency_max_s == 9.0
    assert summary.executor_seconds == 30.0
    assert summary.static_min_executor_seconds == 15.0
    assert summary.static_max_executor_seconds == 60.0
    assert summary.reconfigurations == 1
    assert (len(summary.decisions), summary.earlier_decisions) == (1, 0)


def test_a_run_without_results_has_no_share() -> None:
    tally = RunTally()
    tally.take(Step(5.0, period(1, None)))
    summary = tally.summary(5.0, 1, 1)
    assert math.isnan(summary.in_time_share)
    assert math.isnan(summary.latency_max_s)


def test_a_long_run_holds_its_newest_steps_and_sums_of_all() -> None:
    steps = RecentSteps()
    seen = period(2, LatencyObservation(10, 1.0, 1.0, 1.0, 1.0))
    for number in range(MOST_STEPS + 50):
        steps.append(step(float(number), seen, wanted=2))
    assert len(steps) == len(list(steps)) == MOST_STEPS
    assert (steps[0].at_s, steps[-1].at_s) == (50.0, MOST_STEPS + 49.0)
    assert [one.at_s for one in steps[:2]] == [50.0, 51.0]
    summary = steps.summary(5.0, 1, 4)
    assert summary.results == 10 * (MOST_STEPS + 50)
    assert summary.duration_s == 5.0 * (MOST_STEPS + 50)
    assert len(summary.decisions) == MOST_DECISIONS
    assert summary.earlier_decisions == MOST_STEPS + 50 - MOST_DECISIONS
    assert f"  {summary.earlier_decisions} earlier ones: penstock history --changes" in (
        summary_lines(summary)
    )


def test_steps_can_be_read_while_more_come() -> None:
    steps = RecentSteps(most=2)
    for number in range(2):
        steps.append(Step(float(number)))
    reading = iter(steps)
    steps.append(Step(2.0))
    assert [one.at_s for one in reading] == [0.0, 1.0]
