"""What of a batch's work is the batch's own, and what its rows': seconds = own + per_row x rows.

Tasks cost something before their first row comes: small batches look dear by the row, and a rate
that quadruples looks as if it needed four times the processors. Batches of unlike sizes tell the
two apart; until there are such, all work is taken for the rows'.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from penstock.model.observation import Observation
from penstock.scaling.models.lines import line_through
from penstock.scaling.models.network import Network

LEAST_BATCHES = 5
LEAST_SPREAD = 0.3  # of the mean size; batches that are all alike reveal nothing
LEAST_SHARE = 0.3  # of the mean work of a row that is left to it; less is noise


@dataclass(frozen=True)
class BatchWork:
    """Task seconds of a batch before any row, and of each row."""

    own_s: float
    per_row_s: float


def learn_work(window: Iterable[Observation]) -> BatchWork | None:
    """The line through the batches of a window; None while they do not show one."""
    points: list[tuple[float, float]] = []
    for observation in window:
        batches = observation.batches
        if batches is None or not batches.count or not batches.mean_rows > 0:
            continue
        work_s = (batches.mean_duration_s - batches.mean_overhead_s) * observation.processors
        if work_s > 0:
            points.append((batches.mean_rows, work_s))
    if len(points) < LEAST_BATCHES:
        return None
    line = line_through(points)
    rows, busy = sum(size for size, _ in points), sum(work_s for _, work_s in points)
    if math.sqrt(line.spread / line.count) < LEAST_SPREAD * rows / line.count:
        return None
    own_s, mean_s = line.at(0.0), busy / rows
    if own_s <= 0 or not LEAST_SHARE * mean_s <= line.slope <= mean_s:
        return None
    return BatchWork(own_s, line.slope)


def marginal(network: Network, work: BatchWork | None) -> Network:
    """The network with the work of rows alone; that of batches belongs to their overhead."""
    if work is None:
        return network
    per_row_s = float((network.visits / network.service_rate_per_s).sum())
    if not per_row_s > work.per_row_s:
        return network
    quicker = per_row_s / work.per_row_s
    return replace(network, service_rate_per_s=network.service_rate_per_s * quicker)
