"""The streams of Kotto-Kombi 2018 by their shapes; the figures give no numbers that could be read.

Low and high rates follow from the degrees in the text: an expert's eight tasks of 80 ms are busy to
80% at 80 rows a second, and one task is at 10. Every ten seconds the rate is off by up to 5%.
"""

from collections.abc import Sequence

import numpy as np

from penstock.workloads.profiles import RateProfile

WOBBLE = 0.05
WOBBLE_S = 10.0
LOW_PER_S, HIGH_PER_S = 10.0, 80.0

Knots = Sequence[tuple[float, float]]  # minutes and rows a second, linear between

THREE_STEP: Knots = ((0, 10), (10, 10), (15, 80), (25, 80), (30, 10), (40, 10))
FIVE_STEP: Knots = (
    (0, 10), (8, 10), (8, 80), (16, 80), (16, 10), (24, 10), (24, 80), (32, 80), (32, 10), (40, 10),
)  # fmt: skip
# Rises and falls of chapter 5 Fig. 11; 14 tasks of 100 ms serve 140 rows a second.
WAVES: Knots = ((0, 5), (5, 5), (10, 120), (15, 120), (20, 5), (25, 5), (30, 120), (35, 120),
                (40, 5), (45, 5))  # fmt: skip
# Chapter 7 s.4: a steady rise and fall; two brief peaks and one that lasts.
PROGRESSIVE: Knots = ((0, 10), (5, 10), (20, 120), (25, 120), (35, 10), (45, 10))
ERRATIC: Knots = (
    (0, 15), (8, 15), (8, 120), (9, 120), (9, 15), (16, 15), (16, 120), (17, 120), (17, 15),
    (26, 15), (27, 120), (35, 120), (36, 15), (45, 15),
)  # fmt: skip


def stream(knots: Knots, seed: int, shrink: float = 1.0) -> RateProfile:
    """The rate over time with its small irregular changes; `shrink` shortens it."""
    times_s = np.array([60.0 * minutes / shrink for minutes, _ in knots])
    rates = np.array([float(rate) for _, rate in knots])
    shape = RateProfile(tuple(times_s.tolist()), tuple(rates.tolist()))
    edges_s = np.arange(0.0, times_s[-1], WOBBLE_S)
    rng = np.random.default_rng(seed)
    factors = 1.0 + WOBBLE * rng.uniform(-1.0, 1.0, len(edges_s))
    moments_s = np.unique(np.concatenate((edges_s, times_s)))
    ends_s = np.append(moments_s[1:], moments_s[-1])
    places = np.minimum((moments_s // WOBBLE_S).astype(np.int64), len(factors) - 1)
    # Each piece is a line of its own: at a jump the shape's rate just before it must not be used.
    starts = shape.rate_per_s(moments_s) * factors[places]
    before = shape.rate_per_s(np.nextafter(ends_s, 0.0)) * factors[places]
    pairs_s = np.column_stack((moments_s, ends_s)).ravel()[:-1]
    pairs = np.column_stack((starts, before)).ravel()[:-1]
    return RateProfile(tuple(pairs_s.tolist()), tuple(pairs.tolist()))
