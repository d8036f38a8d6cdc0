"""What a policy is shown of the future."""

import math

import pytest

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
    shown = Foresight(9.0).shown(seen, "drs")
    assert shown[: len(seen) - 1] == seen[:-1]
    for one in shown[-AVERAGED:]:  # or a policy that averages would see a part of it
        assert one.arrival_rate_per_s == pytest.approx(220, rel=0.02)
    assert shown[-1].components[0].arrival_rate_per_s == pytest.approx(440, rel=0.02)


def test_a_fall_or_a_steady_rate_changes_nothing() -> None:
    for seen in (window(400, 300, 200, 100), window(100, 100, 100, 100)):
        assert Foresight(9.0).shown(seen, "drs") is seen


def test_policies_that_forecast_see_what_was_measured() -> None:
    seen = window(100, 120, 140, 160)
    assert Foresight(9.0).shown(seen, "autoscale_plus") is seen


def test_too_little_or_missing_measurements_foresee_nothing() -> None:
    for seen in (window(100, 200), window(100, 120, 140, math.nan), window(0, 0, 0, 0)):
        assert Foresight(9.0).shown(seen, "drs") is seen


def test_a_leap_is_believed_up_to_a_limit() -> None:
    shown = Foresight(300.0).shown(window(1, 1, 100), "drs")
    assert shown[-1].arrival_rate_per_s == pytest.approx(100 * MOST_GROWTH)
