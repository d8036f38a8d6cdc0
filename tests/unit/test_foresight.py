"""What a policy is shown of the future."""

import math
from itertools import pairwise

import numpy as np
import pytest

from contract.fakes import FakeActuator, FakeMeasurer, FakePolicy
from contract.loops import loop_over
from penstock.control.foresight import MOST_GROWTH, Foresight
from penstock.model.decision import Decision, Limits, ScalingPlan
from penstock.model.observation import ComponentObservation, LatencyObservation, Observation
from penstock.scaling.models.jackson import MMK
from penstock.scaling.models.network import network
from penstock.scaling.offered import offered_rates
from penstock.scaling.policies.drs import Drs
from penstock.scaling.policies.knowledge import samples_of
from penstock.scaling.policies.policy import ScalingContext


def window(*rates: float) -> tuple[Observation, ...]:
    return tuple(
        Observation(
            3.0 * at, 3.0, rate, 0.0,
            components=(ComponentObservation("parse", (), 2 * rate, 0.01, 1, 0.0),),
        )
        for at, rate in enumerate(rates)
    )  # fmt: skip


def test_a_rise_is_shown_as_it_will_be() -> None:
    seen = window(100, 120, 140, 160)
    shown = shown_by(Foresight(9.0), seen)
    assert shown[:-1] == seen[:-1]
    assert shown[-1].foreseen
    assert shown[-1].arrival_rate_per_s == pytest.approx(220, rel=0.02)
    assert shown[-1].components[0].arrival_rate_per_s == pytest.approx(440, rel=0.02)


def test_a_fall_or_a_steady_rate_changes_nothing() -> None:
    for seen in (window(400, 300, 200, 100), window(100, 100, 100, 100)):
        assert shown_by(Foresight(9.0), seen) is seen


def shown_by(foresight: Foresight, seen: tuple[Observation, ...]) -> tuple[Observation, ...]:
    return foresight.shown(seen, foresight.rate_per_s(seen))


@pytest.mark.parametrize("looks_ahead", [True, False])
def test_a_policy_that_looks_ahead_sees_what_was_measured(looks_ahead: bool) -> None:
    policy = FakePolicy(1)
    policy.looks_ahead = looks_ahead
    measured = list(window(100, 120, 140, 160))
    loop = loop_over(
        FakeMeasurer(measured), FakeActuator(), policy=policy, foresight=Foresight(9.0)
    )
    for _ in measured:
        loop.step()
    assert (policy.contexts[-1].window == tuple(measured)) is looks_ahead


def test_too_little_or_missing_measurements_foresee_nothing() -> None:
    for seen in (window(100, 200), window(100, 120, 140, math.nan), window(0, 0, 0, 0)):
        assert shown_by(Foresight(9.0), seen) is seen


def test_a_leap_is_believed_up_to_a_limit() -> None:
    shown = shown_by(Foresight(300.0), window(1, 1, 100))
    assert shown[-1].arrival_rate_per_s == pytest.approx(100 * MOST_GROWTH)


def chain(at: int, rate: float) -> Observation:
    """Five components in a row, each with its own three processors; M/M/k holds exactly."""
    names = [f"step{i}" for i in range(5)]
    net = network(tuple(names), np.full(5, rate), np.full(5, 5.0), rate)
    components = tuple(
        ComponentObservation(name, (name,), rate, 0.2, 3, 0.2 * rate * 5.0) for name in names
    )
    mean_s = MMK.latency_s(net, np.full(5, 3))
    return Observation(
        5.0 * at, 5.0, rate, 0.0, components=components,
        latency=LatencyObservation(100, mean_s, mean_s, mean_s, 1.0),
    )  # fmt: skip


def drs_sees(window: tuple[Observation, ...], max_latency_s: float) -> Decision[ScalingPlan]:
    names = [one.name for one in window[-1].components]
    return Drs(model="mmk").decide(
        ScalingContext(
            window, ScalingPlan(dict.fromkeys(names, 3), 15), Limits(5, 60, max_latency_s),
            tuple(pairwise(names)), "space",
        )
    )  # fmt: skip


def test_a_foreseen_rate_is_the_same_all_along_a_chain() -> None:
    """Busy time that stayed behind made each component look as if it multiplied rows."""
    window = tuple(chain(at, 8.5) for at in range(6))
    shown = Foresight(10.0).shown(window, 11.1)
    names = [one.name for one in window[-1].components]
    context = ScalingContext(
        shown, ScalingPlan(dict.fromkeys(names, 3), 15), Limits(5, 60, 5.0), tuple(pairwise(names)),
        "space",
    )  # fmt: skip
    assert offered_rates(context, shown[-1]) == dict.fromkeys(names, pytest.approx(11.1))
    truth_s = chain(0, 11.1).latency
    assert truth_s is not None
    assert drs_sees(shown, 1.01 * truth_s.mean_s).plan.processors == 15


def test_a_perfect_model_is_not_corrected_by_what_is_only_foreseen() -> None:
    window = tuple(chain(at, 8.5) for at in range(6))
    decision = drs_sees(Foresight(10.0).shown(window, 13.0), 1.5)
    assert "corrected by 0 s + 1 x estimate" in decision.reasons[-1]
    least = MMK.minimum(
        network(("a", "b", "c", "d", "e"), np.full(5, 13.0), np.full(5, 5.0), 13.0), 1.5, 60
    )
    assert decision.plan.processors == least.processors


def test_nothing_is_learnt_from_what_is_only_foreseen() -> None:
    window = tuple(chain(at, 8.5) for at in range(6))
    shown = Foresight(10.0).shown(window, 13.0)
    assert len(samples_of(shown, 5.0, shared=False)) == 5 * 5
