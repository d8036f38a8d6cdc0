"""What a run came to, from its periods."""

import math

import pytest

from penstock.control.actions import Outcome, SetExecutors
from penstock.control.step import Step
from penstock.control.summary import summarise_run
from penstock.model.observation import LatencyObservation, NodeObservation, Observation


def period(nodes: int, latency: LatencyObservation | None) -> Observation:
    present = tuple(NodeObservation(str(n), 2, 0.0) for n in range(nodes))
    return Observation(10.0, 5.0, 100.0, 0.0, nodes=present, latency=latency)


def test_results_weigh_by_their_number_and_executors_by_time() -> None:
    observations = [
        period(1, LatencyObservation(100, 2.0, 3.0, 4.0, 1.0)),
        period(3, LatencyObservation(300, 6.0, 8.0, 9.0, 0.2)),
        period(2, None),
    ]
    done = Outcome(SetExecutors(3), True, "1 -> 3 executors")
    steps = [
        Step(5.0, executors_before=1, executors_wanted=3, outcome=done),
        Step(10.0, executors_before=3, executors_wanted=3),
    ]
    summary = summarise_run(observations, steps, 5.0, executors_min=1, executors_max=4)
    assert summary.results == 400
    assert summary.in_time_share == pytest.approx((100 + 60) / 400)
    assert summary.latency_mean_s == pytest.approx(5.0)
    assert summary.executor_seconds == 30.0
    assert summary.static_min_executor_seconds == 15.0
    assert summary.static_max_executor_seconds == 60.0
    assert summary.reconfigurations == 1
    assert len(summary.decisions) == 1


def test_a_run_without_results_has_no_share() -> None:
    summary = summarise_run([period(1, None)], [], 5.0, 1, 1)
    assert math.isnan(summary.in_time_share)
    assert math.isnan(summary.latency_max_s)
