"""The workflows and streams that the scaling experiments rest on."""

import numpy as np
import pytest

from experiments.scaling.trials.run import Settled, trial
from experiments.scaling.trials.training import trained
from experiments.scaling.workloads.streams import ERRATIC, FIVE_STEP, THREE_STEP, stream
from experiments.scaling.workloads.workflows import (
    advertising,
    complex_sensitive,
    diamond,
    heterogeneous,
    insensitive,
    linear,
    sensitive,
    simple,
    star,
)
from penstock.model.decision import Decision, Limits, ScalingPlan
from penstock.scaling.policies.policy import ScalingContext
from penstock.scaling.policies.static import Static


def test_an_experts_degrees_carry_the_highest_rate() -> None:
    for workflow in (linear(), diamond(), star(), advertising()):
        for name, load in workflow.load(80.0).items():
            assert load < 0.85 * workflow.expert[name]


def test_results_follow_selectivities_and_branches() -> None:
    assert heterogeneous().results_per_row == pytest.approx(0.1)
    assert diamond().results_per_row == pytest.approx(1.0)
    assert star().results_per_row == pytest.approx(1.0)
    assert advertising().results_per_row == pytest.approx(0.2)
    assert complex_sensitive(insensitive()).results_per_row == pytest.approx(0.8)


def test_values_are_costly_and_rare_under_zipf() -> None:
    assert sensitive(0.0).mean_s == pytest.approx(0.050)
    assert sensitive(1.5).mean_s < 0.030
    assert sensitive(1.5).variation > sensitive(0.0).variation


@pytest.mark.parametrize("knots", [THREE_STEP, FIVE_STEP, ERRATIC])
def test_streams_keep_their_shape(knots: list[tuple[float, float]]) -> None:
    profile = stream(knots, seed=5)
    minutes = [float(minute) for minute, _ in knots]
    assert profile.duration_s == 60 * minutes[-1]
    low, high = min(rate for _, rate in knots), max(rate for _, rate in knots)
    rates = np.array(profile.rates_per_s)
    assert rates.min() >= 0.95 * low - 1e-9
    assert rates.max() <= 1.05 * high + 1e-9
    assert stream(knots, seed=5, shrink=4.0).duration_s == 15 * minutes[-1]
    if knots is FIVE_STEP:  # a jump stays a jump
        before, after = profile.rate_per_s([8 * 60 - 0.01, 8 * 60 + 0.01])
        assert before < 11 < 75 < after


def test_what_is_held_in_the_end_is_lost() -> None:
    workflow = simple(insensitive())
    static = trial(workflow, THREE_STEP, Static(), 1, workflow.minimal, shrink=4.0)
    assert static.congested
    assert static.lost_share > 0.5
    enough = trial(workflow, THREE_STEP, Static(), 1, {"bolt": 8, "finalize": 1}, shrink=4.0)
    assert enough.lost_share < 0.01
    assert (enough.units, enough.reconfigurations) == (9.0, 0)


def test_training_learns_more_tasks_for_more_rows() -> None:
    knowledge = trained(simple(insensitive()), THREE_STEP, shrink=4.0).knowledge
    few, many = knowledge.best_degree("bolt", 12.0), knowledge.best_degree("bolt", 75.0)
    assert few is not None
    assert many is not None
    assert few < 4 <= many


def test_nothing_is_resized_while_a_change_is_under_way() -> None:
    class Grow:
        name = "grow"

        def decide(self, context: ScalingContext) -> Decision[ScalingPlan]:
            return Decision(ScalingPlan({"a": 9}, 9))

    from contract.fakes import observation

    current = ScalingPlan({"a": 1}, 1)
    newest = observation(at_s=100.0)
    context = ScalingContext((newest,), current, Limits(1, 9, 5.0), changed_at_s=90.0)
    assert Settled(Grow(), wait_s=20.0).decide(context).plan == current
    assert Settled(Grow(), wait_s=10.0).decide(context).plan.processors == 9
