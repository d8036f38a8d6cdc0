"""Rates as whole ticks of a lane's capacity, so that sums are exact whatever their order.

A lane has 2^40 ticks. The tolerance is the epsilon of Balkesen et al. 2013, s. 2.1: ten streams of
a tenth of a lane fill it, though ten times 0.1 in floats is not 1.
"""

import numpy as np

from penstock.model.observation import Floats, Ints

LANE = 1 << 40
FULL = LANE + LANE // 10**9  # C + epsilon
OVERSIZE = FULL + 1  # any stream that no lane can carry; the cap keeps sums of millions in range


def in_ticks(rates_per_s: Floats, lane_capacity_per_s: float) -> Ints:
    """Each rate as a share of a lane, in ticks."""
    share = np.minimum(rates_per_s / lane_capacity_per_s, 2.0)
    ticks: Ints = np.minimum(np.rint(share * LANE), OVERSIZE).astype(np.int64)
    return ticks
