"""Rate profiles: exact sums, exact inverses, and refusals that name the field."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InvalidInput
from penstock.workloads import profiles
from penstock.workloads.profiles import RateProfile, named

RATES = st.one_of(st.just(0.0), st.floats(1e-3, 1e6))
WIDTHS = st.one_of(st.just(0.0), st.floats(1e-3, 1e4))


@st.composite
def any_profile(draw):
    widths = draw(st.lists(WIDTHS, min_size=0, max_size=8))
    times = tuple(float(t) for t in np.concatenate(([0.0], np.cumsum(widths))))
    rates = tuple(draw(st.lists(RATES, min_size=len(times), max_size=len(times))))
    return RateProfile(times, rates, repeat=draw(st.booleans()) and times[-1] > 0)


@given(any_profile(), st.lists(st.floats(0, 1e5), min_size=2, max_size=50))
def test_rows_never_fall(profile, moments):
    rows = profile.rows_by(np.sort(moments))
    assert rows[0] >= 0
    assert (np.diff(rows) >= -1e-9 * rows[1:]).all()


@given(any_profile(), st.lists(st.integers(0, 10**7), min_size=1, max_size=50))
def test_a_row_arrives_when_the_sum_reaches_it(profile, numbers):
    numbers = np.asarray(numbers)
    arrival = profile.arrival_s(numbers)
    comes = np.isfinite(arrival)
    reached = profile.rows_by(arrival[comes])
    slack = 1e-9 * (numbers[comes] + 1) + profile.peak_rate_per_s * arrival[comes] * 1e-13
    assert (np.abs(reached - (numbers[comes] + 1)) <= slack + 1e-9).all()
    # what never comes is not there even very late
    assert (profile.rows_by(1e9) <= numbers[~comes] + 1 + 1e-6 * numbers[~comes]).all()


@given(any_profile(), st.lists(st.integers(0, 10**6), min_size=2, max_size=50))
def test_arrivals_are_in_order_of_the_rows(profile, numbers):
    arrival = profile.arrival_s(np.sort(numbers))
    finite = arrival[np.isfinite(arrival)]
    assert (np.diff(finite) >= -1e-12 * np.abs(finite[1:])).all()
    assert np.isinf(arrival[len(finite) :]).all()


@given(any_profile(), st.floats(0, 1e5), st.floats(0, 10))
def test_scaling_scales_the_sum(profile, moment, factor):
    scaled = profile.scaled(factor).rows_by(moment)
    assert scaled == pytest.approx(factor * float(profile.rows_by(moment)), rel=1e-9, abs=1e-9)


@given(any_profile())
def test_json_reads_back_the_same_profile(profile):
    assert RateProfile.from_json(profile.to_json()) == profile


@given(any_profile(), st.floats(0, 1e4), st.floats(1e-3, 1e3))
def test_rows_are_the_integral_of_the_rate(profile, start, width):
    # the midpoint rule is exact where the rate is linear, and off by a cell at each knot
    cut = np.linspace(start, start + width, 4001)
    middle = profile.rate_per_s((cut[1:] + cut[:-1]) / 2)
    area = float((middle * np.diff(cut)).sum())
    rows = float(profile.rows_by(start + width) - profile.rows_by(start))
    jumps = 2.0 * profile.peak_rate_per_s * (cut[1] - cut[0]) * len(profile.times_s)
    periods = 1 + (width / profile.duration_s if profile.repeat else 0)
    assert abs(area - rows) <= jumps * (periods + 1) + 1e-6 * (profile.rows_by(start + width) + 1)


def test_zero_rate_has_no_arrivals():
    quiet = profiles.constant(0)
    assert quiet.rows_by(1e6) == 0
    assert math.isinf(quiet.arrival_s(0))
    repeated = profiles.steps([(5, 0.0)], repeat=True)
    assert math.isinf(repeated.arrival_s(0))


def test_a_pause_shifts_the_next_arrival_to_its_end():
    profile = profiles.steps([(1, 10.0), (5, 0.0), (1, 10.0)])
    np.testing.assert_allclose(profile.arrival_s([9, 10, 19]), [1.0, 6.1, 7.0])


def test_the_last_step_holds_and_a_repeated_one_starts_again():
    shape = [(10, 1.0), (10, 3.0)]
    assert profiles.steps(shape).rows_by(30) == 70
    assert profiles.steps(shape, repeat=True).rows_by(30) == 50
    assert profiles.steps(shape, repeat=True).rate_per_s(20.0) == 1.0


def test_trend_sums_to_the_trapezoid():
    profile = profiles.trend(0, 100, 10)
    assert profile.rows_by(10) == 500
    assert profile.rows_by(5) == 125
    assert profile.arrival_s(124) == 5.0


def test_bursts_depend_on_the_seed_alone():
    one = profiles.bursts(100, 5, 0.2, seed=3)
    assert one == profiles.bursts(100, 5, 0.2, seed=3)
    assert one != profiles.bursts(100, 5, 0.2, seed=4)
    assert set(one.rates_per_s) == {100.0, 500.0}
    share = np.mean(np.asarray(one.rates_per_s) == 500.0)
    assert 0.1 < share < 0.3


def test_day_goes_from_low_over_high_to_low():
    curve = profiles.day(10, 90, 3600)
    np.testing.assert_allclose(curve.rate_per_s([0, 1800, 3600, 5400]), [10, 90, 10, 90])
    assert curve.rows_by(3600) == pytest.approx(50 * 3600)


def test_named_takes_durations_as_text():
    spec = {"profile": "steps", "steps": [["1m", 5], ["30s", 10]]}
    assert named(spec) == profiles.steps([(60, 5), (30, 10)])


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ({}, "profile"),
        ({"profile": "sine"}, "constant, steps"),
        ({"profile": ["steps"]}, "profile"),
        ({"profile": "constant"}, "rate_per_s"),
        ({"profile": "constant", "rate_per_s": -1}, "rate_per_s"),
        ({"profile": "constant", "rate_per_s": "many"}, "rate_per_s"),
        ({"profile": "constant", "rate_per_s": True}, "rate_per_s"),
        ({"profile": "constant", "rate_per_s": float("nan")}, "rate_per_s"),
        ({"profile": "constant", "rate_per_s": 10**400}, "rate_per_s"),
        ({"profile": "constant", "rate_per_s": 1, "speed": 2}, "speed"),
        ({"profile": "steps", "steps": []}, "steps"),
        ({"profile": "steps", "steps": "abc"}, "steps"),
        ({"profile": "steps", "steps": [[0, 5]]}, "steps[0][0]"),
        ({"profile": "steps", "steps": [[1, 5], [1]]}, "steps[1]"),
        ({"profile": "steps", "steps": [[1, 5]], "repeat": 1}, "repeat"),
        ({"profile": "steps", "steps": [[1e300, 1e300]]}, "too large"),
        ({"profile": "trend", "start_per_s": 1, "end_per_s": 2, "duration_s": "x"}, "duration_s"),
        (
            {"profile": "bursts", "base_per_s": 1, "factor": 2, "probability": 2, "seed": 1},
            "probability",
        ),
        (
            {"profile": "bursts", "base_per_s": 1, "factor": 2, "probability": 0.1, "seed": 0.5},
            "seed",
        ),
        ({"profile": "day", "low_per_s": 1, "high_per_s": 2, "period_s": -5}, "period_s"),
        ({"profile": "knots", "times_s": [1], "rates_per_s": [1]}, "times_s"),
        ({"profile": "knots", "times_s": [0, 2, 1], "rates_per_s": [1, 1, 1]}, "times_s"),
        ({"profile": "knots", "times_s": [0], "rates_per_s": [1], "repeat": True}, "repeat"),
        ({"profile": "knots", "times_s": 5, "rates_per_s": [1]}, "times_s"),
    ],
)
def test_bad_profiles_are_refused_with_a_sentence(spec, word):
    with pytest.raises(InvalidInput) as refusal:
        named(spec)
    assert word in str(refusal.value)
    assert str(refusal.value).endswith(".")


@pytest.mark.parametrize("text", ["", "[1, 2]", "{", "nul", json.dumps({"profile": 3})])
def test_bad_json_is_refused(text):
    with pytest.raises(InvalidInput):
        RateProfile.from_json(text)
