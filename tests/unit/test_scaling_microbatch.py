"""The micro-batch model, its learnt overhead, smoothing and the correction by measurement."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InvalidInput
from penstock.forecast.regression import LinearRegression
from penstock.model.batch_overhead import BatchOverhead
from penstock.model.observation import BatchObservation, NodeObservation, Observation
from penstock.scaling.models.correction import fit_correction
from penstock.scaling.models.microbatch import Microbatch, learn_overhead
from penstock.scaling.models.network import network
from penstock.scaling.smoothing import Smoothing


def loaded(load: float) -> object:
    return network(("a", "b"), np.array([load, load]), np.array([2.0, 2.0]), load)


def test_latency_measured_on_spark_is_met_within_some_percent() -> None:
    """O = 0.25 s on 4 slots; loads 0.25, 0.5, 0.75 gave 0.47, 0.80 and 1.48 s."""
    model = Microbatch(BatchOverhead(0.25))
    for share, seconds in ((0.25, 0.47), (0.5, 0.80), (0.75, 1.48)):
        assert model.at(4 * share, 4) == pytest.approx(seconds, rel=0.1)


def test_a_trigger_interval_longer_than_the_batch_is_waited_for() -> None:
    """Such a batch holds the rows of a whole interval, whatever it takes itself."""
    model = Microbatch(BatchOverhead(0.25), interval_s=2.0)
    assert model.at(1.0, 4) == pytest.approx(1.0 + (0.25 + 1.0 * 2.0 / 4))
    assert Microbatch(BatchOverhead(0.25), interval_s=10.0).at(2.0, 4) == pytest.approx(10.25)


@given(
    load=st.floats(0.1, 50.0),
    fixed=st.floats(0.0, 2.0),
    growth=st.floats(0.001, 0.5),
    most=st.integers(60, 300),
)
def test_never_more_processors_than_the_minimum(
    load: float, fixed: float, growth: float, most: int
) -> None:
    model = Microbatch(BatchOverhead(fixed, growth))
    found = model.assign(loaded(load), most)
    every = {k: model.at(load, k) for k in range(math.floor(load) + 1, most + 1)}
    assert found.latency_s == pytest.approx(min(every.values()))
    bound = found.latency_s * 1.3
    enough = model.minimum(loaded(load), bound, most)
    assert enough.infeasible is None
    assert enough.processors == min(k for k, latency in every.items() if latency <= bound)
    assert enough.processors <= found.processors


def test_a_bound_below_the_minimum_is_answered_with_the_best() -> None:
    model = Microbatch(BatchOverhead(0.25, 0.05))
    found = model.minimum(loaded(3.0), 0.5, 100)
    assert found.infeasible
    assert found.latency_s == model.assign(loaded(3.0), 100).latency_s
    assert found.parallelism.tolist() == [found.processors] * 2


def ran(processors: int, overhead_s: float) -> Observation:
    return Observation(
        at_s=0.0,
        period_s=5.0,
        arrival_rate_per_s=10.0,
        backlog_rows=0.0,
        nodes=(NodeObservation("n", processors, 1.0),),
        batches=BatchObservation(5, 1.0, overhead_s, 10.0),
    )


def test_overhead_is_learnt_from_the_run() -> None:
    seen = [ran(k, 0.05 + 0.05 * k) for k in (4, 4, 8, 6)]
    overhead, error_s = learn_overhead(seen, BatchOverhead(9.0, 9.0))
    assert overhead.fixed_s == pytest.approx(0.05)
    assert overhead.per_processor_s == pytest.approx(0.05)
    assert error_s == pytest.approx(0.0, abs=1e-6)


def test_with_one_processor_count_seen_the_growth_is_the_priors() -> None:
    overhead, _ = learn_overhead([ran(4, 0.3), ran(4, 0.5)], BatchOverhead(9.0, 0.05))
    assert overhead.per_processor_s == 0.05
    assert overhead.at(4) == pytest.approx(0.4)
    assert learn_overhead([], BatchOverhead(0.2))[0] == BatchOverhead(0.2)


def test_smoothing_by_window_and_by_alpha() -> None:
    values = [10.0, 20.0, math.nan, 40.0]
    assert Smoothing(window=2)(values) == 40.0
    assert Smoothing(window=3)(values) == 30.0
    assert Smoothing(alpha=0.5)(values) == pytest.approx(0.5 * 15.0 + 0.5 * 40.0)
    assert math.isnan(Smoothing()([math.nan]))
    with pytest.raises(InvalidInput, match="alpha"):
        Smoothing(alpha=1.0)


def test_correction_finds_the_line_and_says_its_error() -> None:
    pairs = [(x, 0.5 + 2.0 * x) for x in (0.5, 1.0, 1.5, 2.0, 3.0)]
    line = fit_correction(pairs)
    assert line.corrected_s(4.0) == pytest.approx(8.5)
    assert line.bound_s(2.5) == pytest.approx(1.0)
    assert line.error_s == pytest.approx(0.0, abs=1e-6)
    assert "5 pairs" in str(line)


def test_with_little_spread_only_a_factor_is_fitted() -> None:
    line = fit_correction([(1.0, 1.9), (1.01, 2.1), (math.inf, 3.0), (1.0, math.nan)])
    assert line.offset_s == 0.0
    assert line.factor == pytest.approx(2.0, rel=0.02)
    assert line.pairs == 2
    assert fit_correction([]).corrected_s(3.0) == 3.0


def test_a_line_flattened_by_noise_is_not_trusted() -> None:
    """It would promise 1 s where the model says 4 s and every measurement agrees with it."""
    line = fit_correction([(0.8, 1.0), (1.2, 1.02), (0.9, 0.98), (1.1, 1.0), (1.0, 1.01)])
    assert line.offset_s == 0.0
    assert line.corrected_s(4.0) == pytest.approx(4.0, rel=0.02)


@given(
    st.lists(st.tuples(st.integers(-1000, 1000), st.integers(-1000, 1000)), min_size=4, max_size=40)
)
def test_incremental_sums_agree_with_least_squares_over_the_points_left(
    points: list[tuple[int, int]],
) -> None:
    line = LinearRegression()
    for x, y in points:
        line = line.add(1e6 + x, float(y))
    for x, y in points[: len(points) // 2]:
        line = line.remove(1e6 + x, float(y))
    rest = points[len(points) // 2 :]
    xs = np.array([x for x, _ in rest], dtype=float)
    ys = np.array([y for _, y in rest], dtype=float)
    assert line.mean == pytest.approx(ys.mean(), abs=1e-6)
    if np.ptp(xs) > 0:
        slope, intercept = np.polyfit(xs, ys, 1)
        assert line.slope == pytest.approx(slope, rel=1e-4, abs=1e-5)
        assert line.at(1e6) == pytest.approx(intercept, rel=1e-4, abs=1e-2)
        error = math.sqrt(np.mean((ys - slope * xs - intercept) ** 2))
        assert line.error == pytest.approx(error, rel=1e-3, abs=1e-2)
