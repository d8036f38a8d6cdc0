"""Whether more processors help: how much longer a row takes for each one that is added.

    row_s(K) = row_s(1) (1 + contention (K - 1))

so that K processors serve K / (row_s(1) (1 + contention (K - 1))) rows a second, which stops
growing where slots share cores, disks or a lock (Amdahl's law; Gunther's universal law without the
term of coherence). Fitted over the numbers of processors that a run has had, together with what a
batch costs before its first row: small batches are dear by the row, and a run that has many
processors when little comes would else be taken for one in which they hinder each other. A part of
a cluster shows nothing of it: there it depends on what the others do.
"""

import math
from collections.abc import Iterable

import numpy as np

from penstock.model.observation import Floats, Observation

_LEAST_PERIODS = 6  # at a number of processors, for it to mean something
_LEAST_RANGE = 1.5  # the largest number over the smallest; nearer ones show only noise
_MOST = 1.0  # a row that takes K times as long on K processors: nothing is gained
_LEAST_CERTAINTY = 2.0  # standard errors by which it differs from nothing


def learn_contention(window: Iterable[Observation]) -> float:
    """The contention, between 0 and 1; 0 while the run has not shown any."""
    seen = np.array([work for one in window if (work := _batch(one)) is not None])
    if not len(seen):
        return 0.0
    counts, often = np.unique(seen[:, 0], return_counts=True)
    known = counts[often >= _LEAST_PERIODS]
    if len(known) < 2 or known[-1] < _LEAST_RANGE * known[0]:
        return 0.0
    processors, rows, work_s = seen[np.isin(seen[:, 0], known)].T
    each = np.column_stack([rows, rows * (processors - 1)])
    found, error = _fitted(np.column_stack([each, np.ones_like(rows)]), work_s)
    if found[2] < 0 or np.ptp(rows) == 0:  # no batch costs less than nothing
        found, error = _fitted(each, work_s)
    alone_s, slope = found[0], found[1]
    if not slope > _LEAST_CERTAINTY * error:
        return 0.0
    return float(min(_MOST, slope / alone_s)) if alone_s > 0 else _MOST


def _batch(seen: Observation) -> tuple[float, float, float] | None:
    """Processors, rows and task seconds of a batch; of the whole period where none is known."""
    rate, load, batches = seen.arrival_rate_per_s, seen.offered_load, seen.batches
    if seen.part_of_cluster or not (rate > 0 and 0 < load < math.inf and seen.processors > 0):
        return None
    known = batches is not None and batches.count > 0 and batches.mean_rows > 0
    rows = batches.mean_rows if batches is not None and known else rate * seen.period_s
    return float(seen.processors), rows, load / rate * rows


def _fitted(features: Floats, came: Floats) -> tuple[Floats, float]:
    """Least squares, and the standard error of the second weight."""
    weights = np.linalg.lstsq(features, came, rcond=None)[0].astype(np.float64)
    free = max(1, len(came) - features.shape[1])
    variance = float(np.square(came - features @ weights).sum()) / free
    spread = np.linalg.pinv(features.T @ features)
    return weights, math.sqrt(max(0.0, variance * spread[1, 1]))
