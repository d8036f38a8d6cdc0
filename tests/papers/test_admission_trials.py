"""The workloads behind the admission experiments, and the lanes they run on."""

import numpy as np
import pytest

from experiments.admission.trials.lanes import HISTORY_PERIODS, REDIRECT_S, simulate
from experiments.admission.workloads.streams import (
    MEAN_BURST_PERIODS,
    MEAN_IDLE_PERIODS,
    WORKLOADS,
    StreamWorkload,
    rising,
    stream_workload,
)
from penstock.admission.registry import STRATEGIES
from penstock.errors import InvalidInput


def made(name: str, seed: int = 0) -> StreamWorkload:
    return stream_workload(name, np.random.default_rng(seed), periods=96)


@pytest.mark.parametrize("name", WORKLOADS)
def test_workloads_repeat_and_stay_within_what_is_declared(name: str) -> None:
    workload = made(name)
    assert (workload.rates_per_s == made(name).rates_per_s).all()
    assert (workload.rates_per_s != made(name, seed=1).rates_per_s).any()
    assert workload.rates_per_s.shape == (80, 96)
    noise = 5 * np.sqrt(workload.metadata.greatest_rate_per_s / 10.0)  # of a Poisson count
    assert (workload.rates_per_s.max(axis=1) <= workload.metadata.greatest_rate_per_s + noise).all()


def test_the_total_is_constant_in_pairs_and_varies_together() -> None:
    def swing(name: str) -> float:
        total = made(name).rates_per_s.sum(axis=0)
        return float((total.max() - total.min()) / total.mean())

    assert max(swing("constw"), swing("psfcw"), swing("ptfcw")) < 0.1
    assert min(swing("sfvar"), swing("tfvar")) > 0.5


def test_steps_jump_and_trends_do_not() -> None:
    def largest_step(name: str) -> float:
        workload = made(name)
        step = np.abs(np.diff(workload.rates_per_s, axis=1)).max(axis=1)
        return float(np.median(step / workload.metadata.greatest_rate_per_s))

    assert largest_step("sfvar") > 0.6 > 0.35 > largest_step("tfvar")


def test_bursts_are_on_for_their_share_of_time() -> None:
    workload = stream_workload("bursty", np.random.default_rng(2), streams=80, periods=400)
    on = (workload.rates_per_s / workload.metadata.greatest_rate_per_s[:, None]).mean()
    expected = MEAN_BURST_PERIODS / (MEAN_BURST_PERIODS + MEAN_IDLE_PERIODS)
    assert on == pytest.approx(expected, abs=0.05)
    assert (workload.rates_per_s == 0).any()


def test_meta_data_tells_when_a_stream_jumps() -> None:
    workload = made("psfcw")
    known = workload.metadata
    place = (known.phase_periods[:, None] + np.arange(96)) % known.cycle_periods[:, None]
    high = place < known.burst_periods[:, None]
    middle = 0.5 * (known.least_rate_per_s + known.greatest_rate_per_s)
    assert ((workload.rates_per_s > middle[:, None]) == high).mean() > 0.99


def test_the_rising_load_rises_and_falls() -> None:
    total = rising(np.random.default_rng(0), (1.0, 8.0), 64, 100).rates_per_s.sum(axis=0)
    assert total[50] == pytest.approx(8 * total[0], rel=0.15)
    assert total[-1] == pytest.approx(total[0], rel=0.15)


@pytest.mark.parametrize(("name", "streams"), [("uber", 80), ("psfcw", 81)])
def test_unknown_workloads_are_refused(name: str, streams: int) -> None:
    with pytest.raises(InvalidInput, match=r"allowed|even"):
        stream_workload(name, np.random.default_rng(0), streams)


def test_an_overloaded_lane_queues_what_it_cannot_serve() -> None:
    workload = made("constw")
    total = workload.rates_per_s[:, HISTORY_PERIODS:].sum(axis=0).mean()
    start = np.zeros(80, dtype=np.int64)
    unhurried = simulate(workload, None, total * 1.1, start)
    assert max(unhurried.latency_s) == 0
    late = simulate(workload, None, total / 1.1, start)
    # A tenth of every second is left over, so the wait grows by a second in ten.
    assert late.latency_s[-1] == pytest.approx(0.1 * 10 * len(late.latency_s), rel=0.05)
    assert unhurried.redirected == [0] * len(unhurried.redirected)


def test_a_redirection_holds_a_stream_back() -> None:
    workload = made("constw")
    course = simulate(workload, STRATEGIES["par"], workload.mean_total_per_s / 10)
    assert sum(course.redirected) > 0
    for moved, delay_s, rows in zip(
        course.redirected, course.delay_s, course.buffered_rows, strict=True
    ):
        assert delay_s >= REDIRECT_S * moved
        assert (rows > 0) == (moved > 0)
