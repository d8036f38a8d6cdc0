"""How late a lane is: queue samples, weighted towards the newest (Balkesen et al. 2013, s. 2.5).

The estimate is the exponentially weighted moving average q of a lane's queue samples, oldest
first, q <- w sample + (1 - w) q, and a queue of q rows takes q / capacity seconds to serve.
"""

import numpy as np

from penstock.model.observation import Floats

SAMPLE_WEIGHT = 0.3


def queue_latency_s(
    queue_rows: Floats, lane_capacity_per_s: float, weight: float = SAMPLE_WEIGHT
) -> Floats:
    """Seconds a row waits in each lane; zero for a lane without samples."""
    average = np.full(len(queue_rows), np.nan)
    for sample in queue_rows.T:
        moved = np.where(np.isnan(average), sample, average + weight * (sample - average))
        average = np.where(np.isnan(sample), average, moved)
    latency_s: Floats = np.nan_to_num(average) / lane_capacity_per_s
    return latency_s
