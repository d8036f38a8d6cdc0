"""One step of the load is no trend; a ramp is one."""

import numpy as np
import pytest

from penstock.forecast.load_ahead import load_ahead
from penstock.forecast.paths import USUAL_FORECASTERS, Calendar, Trend
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


RISES = [[300.0], [200, 300], [140, 220, 300], [130, 190, 250, 300]]


@pytest.mark.parametrize("rise", RISES)
@pytest.mark.parametrize("before", [60, 300])
def test_what_has_just_come_is_expected_to_stay_before_any_forecast_of_it_is_over(
    rise: list[float], before: int
) -> None:
    """After a long calm the mean had the best record; by it, 105 were expected for 20 s."""
    rates = np.concatenate([np.full(before, 100.0), rise, np.full(8, 300.0)])
    series = rates + np.random.default_rng(1).normal(0.0, 4.0, len(rates))
    for now in range(before, len(series)):
        ahead = load_ahead(series[: now + 1], STEPS, 0.9, USUAL_FORECASTERS, 4)
        assert ahead.expected_per_s[3] > 0.9 * series[now]
        assert ahead.upper_per_s(0.9)[:4].max() < 600


def test_a_rise_that_is_over_is_no_trend_any_more() -> None:
    rises = np.array([100.0, 100, 160, 240, 300, 300, 300])
    assert Trend(5).paths(rises, np.array([4]))[-1] == pytest.approx([300])
    assert Trend(5).paths(rises[:-2], np.array([1]))[-1] == pytest.approx([360])


def test_only_a_load_far_above_all_that_forecasters_knew_of_is_a_surprise() -> None:
    def surprised(*newest: float) -> bool:
        calm = 100 + np.random.default_rng(2).normal(0.0, 4.0, 40)
        series = np.concatenate([calm, newest])
        return load_ahead(series, STEPS, 0.9, USUAL_FORECASTERS, 4).surprised

    assert not surprised()
    assert not surprised(110.0)
    assert surprised(160.0)
    assert not surprised(160.0, 160.0)  # it stays as it is, which one of them said
    assert not surprised(20.0)
    nearly_still = np.concatenate([100 + 0.5 * (np.arange(40) % 2), [103.0]])
    first_of_all = np.concatenate([np.zeros(40), [150.0]])  # of a load nothing was known before
    for series in (nearly_still, first_of_all):
        assert not load_ahead(series, STEPS, 0.9, USUAL_FORECASTERS, 4).surprised


@pytest.mark.parametrize("known_for", [1, 2, 3])
def test_a_calendar_without_a_record_does_not_vouch_for_the_calm(known_for: int) -> None:
    """It is off as well, but has no errors yet to be set against: it expected 279 of 1000."""
    series = np.append(100 + np.random.default_rng(3).normal(0.0, 4.0, 40), 1000.0)
    usual = np.full(len(series) + STEPS[-1], 100.0)
    usual[: len(series) - 1 - known_for] = np.nan
    forecasters = (*USUAL_FORECASTERS, Calendar(tuple(usual)))
    ahead = load_ahead(series, STEPS, 0.99, forecasters, 4)
    assert ahead.surprised
    assert ahead.expected_per_s[3] > 1000


@pytest.mark.parametrize("load", [1.0, 100.0])
def test_a_load_that_never_moved_can_surprise(load: float) -> None:
    """Nobody was ever off, which is not the same as that nothing had come yet."""
    still = np.full(30, load)
    for newest, surprises in ((10 * load, True), (1.05 * load, False)):
        ahead = load_ahead(np.append(still, newest), STEPS, 0.9, USUAL_FORECASTERS, 4)
        assert ahead.surprised == surprises
