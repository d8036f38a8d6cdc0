"""Meta-data: any subset, defaults from the streams seen, and what is known overrides guesses."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InvalidInput
from penstock.forecast.forecaster import LastRate
from penstock.forecast.holt import Holt
from penstock.forecast.metadata import NAMES, metadata_from, nothing_known
from penstock.forecast.outlook import Outlook, outlook

FLAT = [[100.0] * 6]


def seen(
    meta: dict[str, Any], rates: Any = FLAT, horizon: int = 4, age: int | None = None
) -> Outlook:
    ages = None if age is None else np.array([float(age)])
    return outlook(np.array(rates), horizon, Holt(), metadata_from([meta]), ages)


def test_without_meta_data_the_forecast_stands() -> None:
    history = np.random.default_rng(0).uniform(0, 100, (20, 8))
    guessed = outlook(history, 3, Holt())
    informed = outlook(history, 3, Holt(), nothing_known(20))
    assert (guessed.horizon_rate_per_s == informed.horizon_rate_per_s).all()
    assert (guessed.needed_rate_per_s == informed.needed_rate_per_s).all()


@pytest.mark.parametrize(
    ("meta", "at_horizon", "needed"),
    [
        ({"greatest_rate": 300}, 300, 300),  # the example of s.2.5
        ({"greatest_rate": 300, "transition": "jump"}, 300, 300),
        ({"greatest_rate": 300, "transition": "trend"}, 100, 100),  # the forecast, within bounds
        ({"greatest_rate": 90, "transition": "trend"}, 90, 90),
        ({"least_rate": 120}, 120, 120),
        ({"expected_rate": 70}, 70, 70),
        ({"slope": 10}, 140, 140),
        ({"slope": 10, "greatest_rate": 115}, 115, 115),
        ({"slope": -10}, 60, 90),
        ({"lifetime": 8}, 0, 100),  # two of the four periods are left
        ({"lifetime": 5, "greatest_rate": 300}, 0, 0),
        # Ten periods, five high; six are past, so places 6 to 9 are idle.
        ({"period": 10, "phase": 0, "burst": 5, "least_rate": 20, "greatest_rate": 100}, 20, 20),
        ({"period": 10, "phase": 3, "burst": 5, "least_rate": 20, "greatest_rate": 100}, 100, 100),
        ({"period": 8, "phase": 0, "idle": 3, "least_rate": 20, "greatest_rate": 100}, 100, 100),
    ],
)  # fmt: skip
def test_what_is_known_overrides_the_forecast(
    meta: dict[str, Any], at_horizon: float, needed: float
) -> None:
    found = seen(meta)
    assert found.horizon_rate_per_s[0] == pytest.approx(at_horizon)
    assert found.needed_rate_per_s[0] == pytest.approx(needed)


def test_a_stream_that_jumps_may_be_at_its_greatest_again() -> None:
    history = [[20.0, 300.0, 20.0, 20.0, 20.0, 20.0]]
    assert seen({"transition": "jump"}, history).needed_rate_per_s[0] == 300
    assert seen({"transition": "jump", "expected_rate": 50}, history).rise_per_s[0] > 200
    assert seen({"transition": "trend"}, history).needed_rate_per_s[0] < 100
    others = metadata_from([{}, {"transition": "jump"}])
    new = outlook(np.array([[10.0, 80.0], [np.nan, np.nan]]), 3, LastRate(), others)
    assert new.needed_rate_per_s.tolist() == [80, 80]


def test_a_cycle_is_placed_by_the_age_not_by_the_window() -> None:
    meta = {"period": 10, "phase": 0, "burst": 5, "least_rate": 0, "greatest_rate": 50}
    # The newest of 26 measurements is the sixth period of its third cycle: four more are idle.
    assert seen(meta, horizon=4, age=26).needed_rate_per_s[0] == 0
    assert seen(meta, horizon=5, age=26).needed_rate_per_s[0] == 50


def test_a_gradual_cycle_climbs_through_the_burst_and_falls_through_the_idle_part() -> None:
    meta = {
        "period": 8, "phase": 0, "burst": 4, "least_rate": 0, "greatest_rate": 80,
        "transition": "trend",
    }  # fmt: skip
    course = [seen(meta, horizon=1, age=age).horizon_rate_per_s[0] for age in range(8)]
    assert course == pytest.approx([10, 30, 50, 70, 70, 50, 30, 10])


def test_bursts_without_a_phase_tend_to_their_share_of_time() -> None:
    meta = {"burst": 4, "idle": 12, "least_rate": 0, "greatest_rate": 400}
    on, off = [[0.0, 400.0]], [[400.0, 0.0]]
    soon, later = (seen(meta, on, horizon=h).horizon_rate_per_s[0] for h in (1, 100))
    assert 400 > soon > later == pytest.approx(100)
    assert seen(meta, off, horizon=1).horizon_rate_per_s[0] < 100


def test_a_new_stream_is_an_average_one_unless_it_says_more() -> None:
    nan = np.nan
    history = np.array([[10.0, 20.0], [30.0, 40.0], [nan, nan], [nan, nan]])
    meta = metadata_from([{}, {}, {}, {"expected_rate": 7}])
    for found in (outlook(history, 3, LastRate()), outlook(history, 3, LastRate(), meta)):
        assert found.needed_rate_per_s[2] == 25
    assert found.needed_rate_per_s[3] == 7
    assert found.next_rate_per_s[3] == 7


def test_a_declared_cycle_takes_what_it_lacks_from_the_streams_seen() -> None:
    history = np.array([[0.0, 40.0], [10.0, 60.0], [np.nan, np.nan]])
    meta = metadata_from([{}, {}, {"period": 4, "phase": 0}])
    assert outlook(history, 4, Holt(), meta).needed_rate_per_s[2] == 50  # the mean of the peaks


def test_half_a_cycle_is_completed_by_what_others_declare() -> None:
    peak = {"least_rate": 0, "greatest_rate": 90}
    alone = metadata_from([{"burst": 4, **peak}])
    assert outlook(np.array(FLAT), 50, Holt(), alone).horizon_rate_per_s[0] == 90
    others = metadata_from([{"burst": 4, **peak}, {"idle": 8, "burst": 2}])
    found = outlook(np.array(FLAT * 2), 50, Holt(), others)
    assert found.horizon_rate_per_s[0] == pytest.approx(30)  # on for 4 of 12 periods


@pytest.mark.parametrize(
    ("meta", "sentence"),
    [
        ({"least_rate": 5, "greatest_rate": 4}, r"streams\[0\].meta.least_rate"),
        ({"expected_rate": 5, "greatest_rate": 4}, r"streams\[0\].meta.expected_rate"),
        ({"expected_rate": 5, "least_rate": 6}, r"streams\[0\].meta.expected_rate"),
        ({"burst": 5, "period": 4}, r"streams\[0\].meta.burst"),
        ({"idle": 5, "period": 4}, r"streams\[0\].meta.idle"),
        ({"burst": 0, "idle": 0}, r"streams\[0\].meta.period"),
        ({"transition": "slowly"}, "allowed: jump, trend"),
    ],
)
def test_contradictions_are_refused(meta: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        metadata_from([meta])


NUMBER = st.floats(0, 1e6) | st.sampled_from([0.0, 1.0, 2.0])
META = st.fixed_dictionaries(
    {},
    optional={
        name: st.sampled_from(["jump", "trend"]) if name == "transition" else NUMBER
        for name in NAMES
    },
)


@given(st.lists(META, min_size=1, max_size=5), st.integers(1, 90), st.integers(0, 5))
def test_any_subset_gives_finite_rates_within_its_bounds(
    rows: list[dict[str, Any]], horizon: int, periods: int
) -> None:
    history = np.random.default_rng(periods).uniform(0, 100, (len(rows), periods))
    try:
        meta = metadata_from(rows)
    except InvalidInput:
        return
    found: Outlook = outlook(history, horizon, Holt(), meta)
    for column in (found.next_rate_per_s, found.horizon_rate_per_s, found.needed_rate_per_s):
        assert np.isfinite(column).all()
        assert (column >= 0).all()
        assert not (column > meta.greatest_rate_per_s + 1e-9).any()
    assert (found.needed_rate_per_s >= found.horizon_rate_per_s).all()
