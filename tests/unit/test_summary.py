"""What a run came to, from its periods."""

import math
from dataclasses import replace

import pytest

from penstock.control.actions import Outcome, SetExecutors
from penstock.control.controller import MOST_STEPS, RecentSteps
from penstock.control.step import Step
from penstock.control.summary import MOST_DECISIONS, RunTally
from penstock.model.observation import (
    LatencyObservation,
    NodeObservation,
    Observation,
    SinkObservation,
)
from penstock.model.start_up import after_start_up

START_UP = LatencyObservation(50, 20.0, 25.0, 30.0, 0.0)


def period(nodes: int, latency: LatencyObservation | None, at_s: float = 10.0) -> Observation:
    present = tuple(NodeObservation(str(n), 2, 0.0) for n in range(nodes))
    return Observation(at_s, 5.0, 100.0, 0.0, nodes=present, latency=latency)


def step(at_s: float, seen: Observation, wanted: int = 1, done: bool = False) -> Step:
    outcome = Outcome(SetExecutors(wanted), True, "1 -> 3 executors") if done else None
    return Step(at_s, seen, executors_before=1, executors_wanted=wanted, outcome=outcome)


def test_results_weigh_by_their_number_and_executors_by_time() -> None:
    tally = RunTally()
    tally.take(step(0.0, period(0, START_UP, 0.0)))
    good, late = LatencyObservation(100, 2.0, 3.0, 4.0, 1.0), LatencyObservation(300, 6, 8, 9, 0.2)
    tally.take(step(15.0, period(1, good, 15.0), 3, done=True))
    tally.take(step(20.0, period(3, late, 20.0)))
    tally.take(step(25.0, period(2, None, 25.0)))
    summary = tally.summary(5.0, executors_min=1, executors_max=4)
    assert summary.results == 450
    assert summary.in_time_share == pytest.approx((100 + 60) / 400)
    assert summary.latency_mean_s == pytest.approx(5.0)
    assert summary.latency_max_s == 9.0
    assert summary.executor_seconds == 30.0
    assert summary.static_min_executor_seconds == 20.0
    assert summary.static_max_executor_seconds == 80.0
    assert summary.reconfigurations == 1
    assert (len(summary.decisions), summary.earlier_decisions) == (1, 0)


def test_a_run_without_results_has_no_share() -> None:
    tally = RunTally()
    tally.take(Step(5.0, period(1, None)))
    summary = tally.summary(5.0, 1, 1)
    assert math.isnan(summary.in_time_share)
    assert math.isnan(summary.latency_max_s)


def test_rows_that_came_before_the_first_batch_was_through_are_told_beside_the_share() -> None:
    tally = RunTally()
    tally.take(step(5.0, period(1, None, 5.0)))
    tally.take(step(10.0, period(1, START_UP, 10.0)))
    tally.take(step(15.0, period(1, LatencyObservation(40, 9.0, 9.5, 9.9, 0.0), 15.0)))
    tally.take(step(25.0, period(1, LatencyObservation(99, 1.0, 2.0, 2.5, 1.0), 25.0)))
    summary = tally.summary(5.0, 1, 1)
    assert (summary.results, summary.startup_results, summary.startup_s) == (189, 90, 15.0)
    assert summary.in_time_share == 1.0
    assert summary.latency_max_s == 2.5
    assert str(summary).splitlines()[:3] == [
        "20 s, 189 rows",
        "in time: 100.0% within 5 s (mean 1.00 s, worst 2.50 s)",
        "start-up: 15 s, 90 rows that came meanwhile are not in that share (worst 30.00 s)",
    ]


def test_the_share_that_readers_of_the_history_compute_is_the_same() -> None:
    periods = [
        period(
            1, LatencyObservation(10, 3.0, 3.5 + 9 * (n < 3), 4.0 + 9 * (n < 3), n / 10), 5.0 * n
        )
        for n in range(10)
    ]
    tally = RunTally()
    for seen in periods:
        tally.take(step(seen.at_s, seen))
    counted = [seen.latency.in_time_share for seen in after_start_up(periods) if seen.latency]
    assert 5 <= len(counted) < len(periods)
    share = tally.summary(5.0, 1, 1).in_time_share
    assert share == pytest.approx(sum(counted) / len(counted))


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (None, "in time: no results"),
        (START_UP, "in time: nothing to count, all rows came before the first batch was through"),
    ],
)
def test_nothing_to_count_is_said_in_words(seen: LatencyObservation | None, words: str) -> None:
    tally = RunTally()
    tally.take(step(5.0, period(1, seen)))
    text = str(tally.summary(5.0, 1, 1))
    assert words in text.splitlines()
    assert "nan" not in text


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
        summary.lines()
    )


def test_steps_can_be_read_while_more_come() -> None:
    steps = RecentSteps(most=2)
    for number in range(2):
        steps.append(Step(float(number)))
    reading = iter(steps)
    steps.append(Step(2.0))
    assert [one.at_s for one in reading] == [0.0, 1.0]


def test_each_of_several_sinks_is_told_by_its_own_bound() -> None:
    def seen(at_s: float, alerts: float) -> Observation:
        latency = LatencyObservation(100, 2.0, 3.0, 4.0, alerts)
        return replace(
            period(1, latency, at_s),
            sinks=(
                SinkObservation("alerts", 3.0, latency),
                SinkObservation("archive", 60.0, LatencyObservation(10, 5.0, 8.0, 9.0, 1.0)),
            ),
        )

    tally = RunTally()
    tally.take(step(0.0, period(0, START_UP, 0.0)))
    for number, alerts in enumerate((0.9, 0.8), start=3):
        tally.take(step(5.0 * number, seen(5.0 * number, alerts)))
    summary = tally.summary(3.0, executors_min=1, executors_max=4)
    assert {sink.name: sink.in_time_share for sink in summary.sinks} == {
        "alerts": pytest.approx(0.85), "archive": 1.0,
    }  # fmt: skip
    assert "  alerts: 85.0% within 3 s (mean 2.00 s, worst 4.00 s)" in summary.lines()
    assert "  archive: 100.0% within 60 s (mean 5.00 s, worst 9.00 s)" in summary.lines()
