"""One step of the load is no trend; a ramp is one."""

import numpy as np
import pytest

from penstock.forecast.load_ahead import load_ahead
from penstock.forecast.paths import USUAL_FORECASTERS, Trend
from penstock.model.observation import Floats

STEPS = (1, 2, 3, 4, 6, 9, 13, 19, 28, 41, 60)
LOW, HIGH = 20.0, 90.0


def upper_per_s(series: Floats) -> Floats:
    return load_ahead(series, STEPS, 0.99, USUAL_FORECASTERS, 4).upper_per_s(0.99)


@pytest.mark.parametrize("met_at", [0.0, 0.3, 0.6])  # of the period in which the load steps up
@pytest.mark.parametrize("before", [12, 60, 300])
def test_one_step_of_the_load_is_not_taken_for_a_trend(before: int, met_at: float) -> None:
    chance = np.random.default_rng(1)
    first = HIGH - met_at * (HIGH - LOW)
    rates = np.concatenate([np.full(before, LOW), [first], np.full(24, HIGH)])
    series = rates + chance.normal(0.0, 1.0, len(rates))
    for since in (1, 2, 3, 5, 12, 24):
        assert (
            upper_per_s(series[: before + 1 + since]).max() < 3 * HIGH
        )  # 998 where it was taken for one


def test_a_ramp_is_expected_to_go_on_once_most_changes_are_rises() -> None:
    climbs = np.array([120.0, 118, 122, 119, 148, 175, 202])
    assert Trend(5).paths(climbs, np.array([1, 2, 3]))[-1] == pytest.approx([229, 256, 283])


def test_a_ramp_that_has_just_begun_is_within_what_is_planned_for() -> None:
    """Twelve calm periods, then 30 rows/s more in each: what comes while an executor starts."""
    rates = np.concatenate([np.full(12, 120.0), 120 + 30.0 * np.arange(1, 30)])
    series = rates + np.random.default_rng(1).normal(0.0, 3.0, len(rates))
    met = [1.02 * upper_per_s(series[:now])[3] >= series[now + 3] for now in range(16, 36)]
    assert all(met)


def test_a_trend_lasts_as_long_again_as_it_was_looked_at() -> None:
    line = 10.0 + 2.0 * np.arange(30)
    assert Trend(5).paths(line, np.array([2, 5, 50]))[-1] == pytest.approx([72, 78, 78])


@pytest.mark.parametrize("step", [5.0, 70.0, -70.0])
def test_a_step_is_no_trend_whatever_its_height(step: float) -> None:
    series = np.where(np.arange(40) < 20, 100.0, 100.0 + step)
    assert Trend(5).paths(series, np.array([1, 4]))[:, 1].tolist() == series.tolist()
