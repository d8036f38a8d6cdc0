"""Holt's linear trend: the recurrences, the fit, gaps in the history, many streams at once."""

from itertools import pairwise
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from penstock.forecast.forecaster import LastRate
from penstock.forecast.holt import Holt

RATES = st.floats(0, 1e6, allow_nan=False, width=32)


def by_the_book(rates: list[float], alpha: float, gamma: float) -> tuple[float, float, float]:
    """Level, trend and summed square error, in the paper's own form."""
    changes = [later - before for before, later in pairwise(rates[:4])]
    level, trend, missed = rates[0], median([*changes, 0.0, 0.0, 0.0][:3]), 0.0
    for rate in rates[1:]:
        missed += (rate - level - trend) ** 2
        before = level
        level = alpha * rate + (1 - alpha) * (level + trend)
        trend = gamma * (level - before) + (1 - gamma) * trend
    return level, trend, missed


@given(st.lists(RATES, min_size=1, max_size=20))
def test_one_pair_follows_the_recurrences(rates: list[float]) -> None:
    found = Holt((0.4,), (0.3,)).fit(np.array([rates]))
    level, trend, _ = by_the_book(rates, 0.4, 0.3)
    assert found.level[0] == pytest.approx(level, rel=1e-6, abs=1e-3)
    assert found.trend[0] == pytest.approx(trend, rel=1e-6, abs=1e-3)


@given(arrays(np.float64, (5, 8), elements=RATES))
def test_each_stream_gets_the_pair_that_missed_it_least(history: np.ndarray) -> None:
    holt = Holt()
    found = holt.fit(history)
    for row, rates in enumerate(history.tolist()):
        errors = [
            by_the_book(rates, a, g)[2] for a in holt.level_weights for g in holt.trend_weights
        ]
        chosen = by_the_book(rates, found.alpha[row], found.gamma[row])[2]
        assert chosen <= min(errors) * (1 + 1e-9) + 1e-6


@given(arrays(np.float64, (6, 7), elements=RATES), st.permutations(range(6)))
def test_streams_do_not_touch_each_other(history: np.ndarray, order: list[int]) -> None:
    together = Holt().forecast(history, (1, 4))
    assert (Holt().forecast(history[order], (1, 4)) == together[order]).all()


def test_a_straight_line_is_continued_and_never_below_zero() -> None:
    lines = np.array([[100.0 + 7 * t for t in range(10)], [50.0 - 5 * t for t in range(10)]])
    ahead = Holt().forecast(lines, (1, 5))
    assert ahead[0] == pytest.approx([170, 198])
    assert ahead[1] == pytest.approx([0, 0], abs=1e-9)


@pytest.mark.parametrize(
    "first", [[1000.0], [0.0, 1000.0], [0.0, 1000.0, 1000.0], [4000.0, 1000.0, 1000.0, 1000.0]]
)
@pytest.mark.parametrize("gaps", [0, 2])
def test_one_strange_measurement_at_first_is_no_trend(first: list[float], gaps: int) -> None:
    history = np.array([[np.nan] * gaps + first])
    assert Holt().forecast(history, (1, 2))[0] == pytest.approx([1000, 1000], rel=0.3)


def test_noise_around_a_constant_gives_a_heavier_smoothing_than_a_jump() -> None:
    rng = np.random.default_rng(4)
    noise = rng.normal(100, 10, (200, 40))
    steps = np.where(np.arange(40) % 20 < 10, 50.0, 150.0) + rng.normal(0, 1, (200, 40))
    assert Holt().fit(noise).alpha.mean() < Holt().fit(steps).alpha.mean() - 0.2


def test_gaps_leave_level_and_trend_as_they_were() -> None:
    nan = np.nan
    history = np.array(
        [
            [nan, nan, 10.0, 12.0, 14.0],
            [10.0, 12.0, 14.0, nan, nan],
            [nan, nan, nan, nan, nan],
            [nan, 5.0, nan, nan, nan],
        ]
    )
    ahead = Holt().forecast(history, (1,))[:, 0]
    assert ahead[[0, 1, 3]] == pytest.approx([16, 16, 5])
    assert np.isnan(ahead[2])


def test_no_history_at_all_is_not_a_forecast() -> None:
    assert np.isnan(Holt().forecast(np.empty((3, 0)), (1, 2))).all()
    assert np.isnan(LastRate().forecast(np.empty((3, 0)), (1, 2))).all()
    assert Holt().forecast(np.empty((0, 4)), (1, 2)).shape == (0, 2)


def test_blocks_do_not_show() -> None:
    history = np.random.default_rng(1).uniform(0, 9, (9000, 6))
    whole = Holt().forecast(history, (2,))
    assert (whole[4000:4200] == Holt().forecast(history[4000:4200], (2,))).all()
