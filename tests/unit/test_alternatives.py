"""A recorded decision at other sizes, where there is little to go by."""

import math
from dataclasses import replace

import pytest

from penstock.config import Settings
from penstock.control.alternatives import why
from penstock.control.history.moment import Moment
from penstock.control.records import DecisionRecord, RunRecord
from penstock.model.decision import Decision, ScalingPlan
from penstock.model.observation import (
    ComponentObservation,
    LatencyObservation,
    NodeObservation,
    Observation,
)
from penstock.scaling.policies.registry import names

SPLIT = ScalingPlan({"a": 2, "b": 1}, 3)


def apart(number: int) -> Observation:
    """Two components with processors of their own: one of load 1, one of load 0.5."""
    return Observation(
        5.0 * number, 5.0, 50.0, 0.0,
        components=(
            ComponentObservation("a", ("a",), 50.0, 0.02, 2, 5.0),
            ComponentObservation("b", ("b",), 50.0, 0.01, 1, 2.5),
        ),
        nodes=(NodeObservation("1", 1, 2.5),) * 3,
        latency=LatencyObservation(100, 0.5, 1.0, 2.0, 1.0),
    )  # fmt: skip


def moment(policy: str, plan: ScalingPlan, *window: Observation) -> Moment:
    made = DecisionRecord(100.0, policy, plan, Decision(plan, ("enough",)), plan)
    run = RunRecord("road", policy, 0.0, 5.0, 5.0, executors_max=4, edges=(("a", "b"),))
    return Moment(run, made, window, (), ())


@pytest.mark.parametrize("policy", names())
def test_every_policy_can_be_asked_again_apart_and_before_anything_was_measured(
    policy: str,
) -> None:
    found = why(moment(policy, SPLIT, *(apart(number) for number in range(1, 21))))
    assert [one.executors for one in found.alternatives] == [1, 2, 3, 4]
    assert all(math.isnan(one.latency_s) for one in found.alternatives)
    assert any(note.startswith("components have processors of their own") for note in found.notes)
    early = why(moment(policy, ScalingPlan({}, 1)))
    assert early.observation is None
    assert [one.chosen for one in early.alternatives] == [True, False, False, False]


def test_the_share_is_that_of_the_run_unless_decision_or_settings_say_it() -> None:
    given = moment("drs", SPLIT, *(apart(number) for number in range(1, 21)))
    of_run = replace(given, run=replace(given.run, share=0.9))
    told = replace(given.decision.decision, numbers={"share": 0.95})
    of_decision = replace(of_run, decision=replace(given.decision, decision=told))
    assert [why(one).share for one in (given, of_run, of_decision)] == [0.99, 0.9, 0.95]
    assert why(of_decision, Settings(share=0.8)).share == 0.8


def test_apart_the_policy_itself_says_what_is_too_few() -> None:
    found = why(moment("drs", SPLIT, *(apart(number) for number in range(1, 21))))
    verdicts = {one.executors: one.verdict for one in found.alternatives}
    assert verdicts[2].startswith("too few: ")
    assert verdicts[3] == "chosen"
    assert verdicts[4] == "more to pay for"
