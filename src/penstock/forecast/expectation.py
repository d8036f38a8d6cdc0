"""The rate that meta-data leads one to expect, X^m of Balkesen et al. 2013, s. 2.4 and 2.5.

The most informative knowledge decides, in this order:

1. cycle and phase: the stream's place in its cycle. `jump`: the greatest rate in the burst, the
   least in the idle part; `trend`: a line from the least to the greatest through the burst, and
   back through the idle part.
2. burst and idle length without a phase: on and off as a Markov chain. With mean lengths B and I,
   the share of time on tends from what it is now to B / (B + I) as exp(-h (1/B + 1/I)).
3. slope: a line from the newest rate.
4. transition `jump`: the greatest rate, as seen so far where none is declared; or a greatest rate
   alone (the paper's example).
5. an expected rate.

What is declared bounds every guess: none leaves [least, greatest], and after a stream's lifetime
its rate is zero. NaN where the meta-data says nothing.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.forecast.metadata import JUMP, TREND, Defaults, StreamMetadata
from penstock.model.observation import Floats

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Rows:
    """Streams whose meta-data says something of their rate, with what was measured of them."""

    metadata: StreamMetadata
    newest_per_s: Floats  # NaN for a stream without history
    seen_least_per_s: Floats  # over its history; NaN without
    seen_greatest_per_s: Floats
    age_periods: Floats  # periods since it joined, the newest measurement included


def expected_rates(rows: Rows, defaults: Defaults, ahead: int) -> Floats:
    """The rate expected `ahead` periods after the newest measurement."""
    known = rows.metadata
    low = _first(known.least_rate_per_s, rows.seen_least_per_s, defaults.least_rate_per_s)
    high = _first(known.greatest_rate_per_s, rows.seen_greatest_per_s, defaults.greatest_rate_per_s)
    high = np.maximum(low, high)
    cyclic, placed = ~np.isnan(known.cycle), ~np.isnan(known.phase_periods)
    peak = ~np.isnan(known.greatest_rate_per_s)
    plain = np.isnan(known.expected_rate_per_s)
    now = _first(rows.newest_per_s, known.expected_rate_per_s, defaults.expected_rate_per_s)
    rate = np.select(
        [
            cyclic & placed,
            goes_by_chance(known),
            ~np.isnan(known.slope_per_period),
            (known.transition == JUMP) | (peak & plain & (known.transition != TREND)),
            ~plain,
        ],
        [
            _in_cycle(rows, defaults, low, high, ahead),
            _on_and_off(rows, low, high, ahead),
            now + known.slope_per_period * ahead,
            high,
            known.expected_rate_per_s,
        ],
        np.nan,
    )
    return bounded(rows, rate, ahead)


def goes_by_chance(known: StreamMetadata) -> Bools:
    """Streams that are on and off for known times, but nobody knows when."""
    timed = ~np.isnan(known.cycle) & ~np.isnan(known.phase_periods)
    return ~np.isnan(known.burst_periods) & ~np.isnan(known.idle_periods) & ~timed


def bounded(rows: Rows, rate: Floats, ahead: int) -> Floats:
    """A guess of any origin, held to the declared least and greatest rate and to the lifetime."""
    known = rows.metadata
    # fmin and fmax pass over a bound that is not known; a guess that is not known stays so.
    held = np.fmin(np.fmax(rate, known.least_rate_per_s), known.greatest_rate_per_s)
    held = np.where(np.isnan(rate), np.nan, np.maximum(held, 0.0))
    over = rows.age_periods + ahead > known.lifetime_periods
    return np.where(over, 0.0, held)


def _in_cycle(rows: Rows, defaults: Defaults, low: Floats, high: Floats, ahead: int) -> Floats:
    known = rows.metadata
    length = np.where(np.isnan(known.cycle), 1.0, known.cycle)
    rest = length - known.idle_periods
    burst = _first(known.burst_periods, rest, defaults.burst_share * length)
    # The newest of `age` measurements began age - 1 periods after the stream joined.
    place = np.mod(known.phase_periods + rows.age_periods - 1 + ahead, length)
    jump = np.where(place < burst, high, low)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        up, down = (place + 0.5) / burst, (length - place - 0.5) / (length - burst)
    climb = low + (high - low) * np.clip(np.where(place < burst, up, down), 0.0, 1.0)
    return np.where(known.transition == TREND, climb, jump)


def _on_and_off(rows: Rows, low: Floats, high: Floats, ahead: int) -> Floats:
    burst, idle = rows.metadata.burst_periods, rows.metadata.idle_periods
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = burst / (burst + idle)
        now = np.clip((rows.newest_per_s - low) / (high - low), 0.0, 1.0)
        memory = np.exp(-ahead * (1.0 / burst + 1.0 / idle))
    now = np.where(np.isnan(now), share, now)
    return low + (high - low) * (share + (now - share) * np.where(np.isnan(memory), 0.0, memory))


def _first(*sources: Floats | float) -> Floats:
    """The first of the sources that is known, row by row."""
    found = np.asarray(sources[0], dtype=np.float64)
    for source in sources[1:]:
        found = np.where(np.isnan(found), source, found)
    return found
