"""Whether more processors help: how much longer a row takes for each one that is added.

    row_s(K) = row_s(1) (1 + contention (K - 1))

so that K processors serve K / (row_s(1) (1 + contention (K - 1))) rows a second, which stops
growing where slots share cores, disks or a lock (Amdahl's law; Gunther's universal law without the
term of coherence). Fitted over the numbers of processors that a run has had.
"""

import math
from collections.abc import Iterable

import numpy as np

from penstock.model.observation import Observation

_LEAST_PERIODS = 6  # at a number of processors, for its median to mean something
_LEAST_RANGE = 1.5  # the largest number over the smallest; nearer ones show only noise
_MOST = 1.0  # a row that takes K times as long on K processors: nothing is gained


def learn_contention(window: Iterable[Observation]) -> float:
    """The contention, between 0 and 1; 0 while the run has not shown any."""
    seen: dict[int, list[float]] = {}
    for observation in window:
        rate, load = observation.arrival_rate_per_s, observation.offered_load
        if rate > 0 and load > 0 and math.isfinite(load) and observation.processors > 0:
            seen.setdefault(observation.processors, []).append(load / rate)
    known = {count: found for count, found in seen.items() if len(found) >= _LEAST_PERIODS}
    if len(known) < 2 or max(known) < _LEAST_RANGE * min(known):
        return 0.0
    beyond = np.array([count - 1.0 for count in known])
    row_s = np.array([np.median(found) for found in known.values()])
    weights = np.sqrt([float(len(found)) for found in known.values()])
    slope, alone_s = np.polyfit(beyond, row_s, 1, w=weights)
    if not (slope > 0 and alone_s > 0):
        return 0.0 if slope <= 0 else _MOST
    return float(min(_MOST, slope / alone_s))
