"""Streams with their rates: the workloads of Balkesen et al. 2013, s. 6.1.1 and 6.5.

    constw   every stream at one rate, Poisson arrivals
    psfcw    pairs that jump between low and high, opposite to each other: the total is constant
    ptfcw    the same, gradually
    sfvar    all jump between low and high within a third of a common cycle: the total varies
    tfvar    the same, gradually
    bursty   on and off for exponentially distributed times, even arrivals while on

Peak rates are uniform between two limits. Times are in periods of the controller.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.errors import InvalidInput
from penstock.forecast.metadata import StreamMetadata, metadata_from
from penstock.model.observation import Floats, Ints

LEAST_PEAK_PER_S, GREATEST_PEAK_PER_S = 20.0, 180.0
LOW_SHARE = 0.25  # of the peak rate, in the low part of a cycle
PERIOD_S = 10.0
HALF_CYCLE_PERIODS = (6, 18)  # of a pair: uniform, whole
COMMON_CYCLE_PERIODS = 24  # of the workloads whose total varies
PHASE_SPREAD = 1 / 3  # of the common cycle
MEAN_BURST_PERIODS = 8.0
MEAN_IDLE_PERIODS = 8.0


@dataclass(frozen=True)
class StreamWorkload:
    """Rows per second that arrived in each period, (streams, periods), and what clients declare."""

    name: str
    rates_per_s: Floats
    metadata: StreamMetadata

    @property
    def mean_total_per_s(self) -> float:
        """Rate of all streams together, on average."""
        return float(self.rates_per_s.sum(axis=0).mean())


def stream_workload(
    name: str, rng: np.random.Generator, streams: int = 80, periods: int = 132
) -> StreamWorkload:
    """A workload by its name in the paper."""
    if name not in WORKLOADS:
        raise InvalidInput(f"workload is {name!r}; allowed: {', '.join(WORKLOADS)}.")
    if streams < 2 or streams % 2:
        raise InvalidInput(f"streams is {streams}; it must be even and at least 2.")
    return WORKLOADS[name](rng, streams, periods)


def _constant(rng: np.random.Generator, streams: int, periods: int) -> StreamWorkload:
    peak = _peaks(rng, streams)
    rates = np.repeat(peak[:, None], periods, axis=1)
    metas = [{"greatest_rate": float(rate)} for rate in peak]
    return StreamWorkload("constw", _poisson(rng, rates), metadata_from(metas))


def _pairs(name: str, gradual: bool) -> Callable[..., StreamWorkload]:
    def make(rng: np.random.Generator, streams: int, periods: int) -> StreamWorkload:
        half = streams // 2
        peak = np.repeat(_peaks(rng, half), 2)
        cycle = np.repeat(2 * rng.integers(*HALF_CYCLE_PERIODS, half, endpoint=True), 2)
        phase = np.repeat(rng.integers(0, cycle[::2]), 2)
        phase[1::2] = (phase[1::2] + cycle[1::2] // 2) % cycle[1::2]
        return _cyclic(name, rng, (peak, cycle, phase), gradual, periods)

    return make


def _together(name: str, gradual: bool) -> Callable[..., StreamWorkload]:
    def make(rng: np.random.Generator, streams: int, periods: int) -> StreamWorkload:
        cycle = np.full(streams, COMMON_CYCLE_PERIODS)
        phase = rng.integers(0, round(PHASE_SPREAD * COMMON_CYCLE_PERIODS), streams)
        return _cyclic(name, rng, (_peaks(rng, streams), cycle, phase), gradual, periods)

    return make


def _cyclic(
    name: str,
    rng: np.random.Generator,
    shape: tuple[Floats, Ints, Ints],
    gradual: bool,
    periods: int,
) -> StreamWorkload:
    peak, cycle, phase = shape
    low, half = LOW_SHARE * peak, cycle / 2
    place = (phase[:, None] + np.arange(periods)) % cycle[:, None]
    if gradual:
        middle = place + 0.5  # the mean rate of a period is the line's at its middle
        share = 1.0 - np.abs(middle - half[:, None]) / half[:, None]
    else:
        share = (place < half[:, None]).astype(np.float64)
    rates = low[:, None] + (peak - low)[:, None] * share
    metas: list[dict[str, Any]] = [
        {
            "greatest_rate": float(peak[row]),
            "least_rate": float(low[row]),
            "transition": "trend" if gradual else "jump",
            "period": float(cycle[row]),
            "phase": float(phase[row]),
            "burst": float(half[row]),
        }
        for row in range(len(peak))
    ]
    return StreamWorkload(name, _poisson(rng, rates), metadata_from(metas))


def _bursty(rng: np.random.Generator, streams: int, periods: int) -> StreamWorkload:
    peak = _peaks(rng, streams)
    share = np.array([_time_on(rng, periods) for _ in range(streams)])
    metas = [
        {
            "greatest_rate": float(rate),
            "least_rate": 0.0,
            "burst": MEAN_BURST_PERIODS,
            "idle": MEAN_IDLE_PERIODS,
        }
        for rate in peak
    ]
    return StreamWorkload("bursty", peak[:, None] * share, metadata_from(metas))


def _time_on(rng: np.random.Generator, periods: int) -> Floats:
    """The share of each period in which an on-off source is on, from its steady state on."""
    on_first = bool(rng.random() < MEAN_BURST_PERIODS / (MEAN_BURST_PERIODS + MEAN_IDLE_PERIODS))
    means = (MEAN_BURST_PERIODS, MEAN_IDLE_PERIODS)
    ends, is_on, spent = [0.0], [], on_first
    while ends[-1] < periods:
        ends.append(ends[-1] + rng.exponential(means[0] if spent else means[1]))
        is_on.append(spent)
        spent = not spent
    edges = np.array(ends)
    time_on = np.concatenate(([0.0], np.cumsum(np.diff(edges) * np.array(is_on))))
    by = np.interp(np.arange(periods + 1), edges, time_on)
    return np.diff(by)


def rising(
    rng: np.random.Generator, levels: tuple[float, float], streams: int = 320, periods: int = 240
) -> StreamWorkload:
    """All streams climb from the lower to the upper level and fall back, each fluctuating by 20%.

    A level of 1 is the sum of the streams' base rates. Clients declare the peak and that changes
    are gradual, not when they come.
    """
    base = _peaks(rng, streams)
    low, high = levels
    climb = low + (high - low) * (1.0 - np.abs(np.linspace(-1.0, 1.0, periods)))
    phase = rng.uniform(0, COMMON_CYCLE_PERIODS, (streams, 1))
    angle = 2 * np.pi * (np.arange(periods) + phase) / COMMON_CYCLE_PERIODS
    rates = base[:, None] * climb * (1.0 + 0.2 * np.sin(angle))
    metas = [{"greatest_rate": float(1.2 * high * rate), "transition": "trend"} for rate in base]
    return StreamWorkload("rising", _poisson(rng, rates), metadata_from(metas))


def _peaks(rng: np.random.Generator, count: int) -> Floats:
    return rng.uniform(LEAST_PEAK_PER_S, GREATEST_PEAK_PER_S, count)


def _poisson(rng: np.random.Generator, rates_per_s: Floats) -> Floats:
    """What a period of exponential inter-arrival times counts."""
    return rng.poisson(rates_per_s * PERIOD_S) / PERIOD_S


WORKLOADS: Mapping[str, Callable[[np.random.Generator, int, int], StreamWorkload]] = {
    "constw": _constant,
    "psfcw": _pairs("psfcw", gradual=False),
    "ptfcw": _pairs("ptfcw", gradual=True),
    "sfvar": _together("sfvar", gradual=False),
    "tfvar": _together("tfvar", gradual=True),
    "bursty": _bursty,
}
