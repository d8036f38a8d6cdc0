"""What a policy is shown of the future."""

import math

import pytest

from contract.fakes import FakeActuator, FakeMeasurer, FakePolicy
from contract.loops import loop_over
from penstock.control.foresight import AVERAGED, MOST_GROWTH, Foresight
from penstock.model.observation import ComponentObservation, Observation


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
    assert shown[: len(seen) - 1] == seen[:-1]
    for one in shown[-AVERAGED:]:  # or a policy that averages would see a part of it
        assert one.arrival_rate_per_s == pytest.approx(220, rel=0.02)
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
