"""What batches and rows cost, as a run has shown it: what `promise` plans with."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from penstock.model.batch_overhead import USUAL_OVERHEAD
from penstock.model.observation import Observation
from penstock.model.start_up import after_start_up
from penstock.scaling.models.batch_course import Work
from penstock.scaling.models.batch_work import learn_work
from penstock.scaling.models.contention import learn_contention
from penstock.scaling.models.microbatch import learn_overhead
from penstock.scaling.models.row_work import row_work

_SETTLES_S = 10.0  # after an executor came: until its code is compiled and its caches are filled
_RECENT = 60  # observations that say what batches cost
_ROWS_OF = 12  # observations that say what a row costs
_SIZES_OF = 360  # observations in which numbers of processors are compared
_P95, _SLOWEST = 0.95, 0.99  # shares from which a measured latency speaks
_MOST_STRETCH = 2.0  # a larger one is a disturbance, not what batches take


def learn_costs(
    window: Sequence[Observation], interval_s: float, share: float = 1.0
) -> Work | None:
    """What the newest periods show; None while no row was measured.

    The batches of the start-up compile code and start processes. Taken for what batches cost, they
    would say that no number of executors keeps the bound. Rows cost little more in them, so those
    show what a row costs; of batches, what is usual is believed until the run is warm.
    """
    warm = after_start_up(window)
    warm_s = warm[0].at_s if warm else math.inf
    recent = settled(window[-_RECENT:], warm_s)
    own = learn_work(recent)
    own_s = own.own_s if own is not None else 0.0
    contention = learn_contention(settled(window[-_SIZES_OF:], warm_s))
    row_s = row_cost_s(recent or window[-_RECENT:], own_s, contention)
    if math.isnan(row_s):
        row_s = _batch_row_cost_s(window[-_RECENT:])
    if math.isnan(row_s):
        return None
    overhead = replace(learn_overhead(recent, USUAL_OVERHEAD)[0], work_s=own_s)
    return Work(overhead, row_s, interval_s, _stretch(recent, interval_s, share), contention)


def settled(window: Sequence[Observation], from_s: float = -math.inf) -> list[Observation]:
    """From a moment on, without the periods in which executors came, and some seconds more.

    An executor that starts takes cores from those that work. Taken for what a batch costs with that
    many processors, this would say that more of them never help.
    """
    known = {node.name for node in window[0].nodes} if window else set()
    until_s, found = -math.inf, list[Observation]()
    for one in window:
        names = {node.name for node in one.nodes}
        if not names <= known:
            until_s = one.at_s + _SETTLES_S
        known |= names
        if one.at_s > until_s and one.at_s >= from_s:
            found.append(one)
    return found


def row_cost_s(window: Sequence[Observation], own_s: float, contention: float) -> float:
    """Processor-seconds of a row of the sources, alone, over the newest periods that show it.

    Each period is taken with the processors that it had: those of before a change say what a row
    cost with as many as there were then.
    """
    rows = work_s = 0.0
    seen = 0
    for observation in reversed(window):
        found = row_work(observation, own_s)
        if found is not None:
            beyond = max(0, observation.processors - 1)
            rows += found.rows_per_s * (1 + contention * beyond)
            work_s, seen = work_s + found.load, seen + 1
        if seen == _ROWS_OF:
            break
    return work_s / rows if rows else math.nan


def _batch_row_cost_s(window: Sequence[Observation]) -> float:
    """The same by the rows of batches that ended: also where nothing has arrived since the first.

    What waits then has to be worked off, however little arrives. The work of a batch may be seen in
    the period before the one in which its rows are. Where the work of a period was not measured,
    its rows do not count either.
    """
    rows = work_s = 0.0
    for one in window:
        busy_s = sum(part.busy_s for part in one.components)
        if math.isnan(busy_s):
            continue
        work_s += busy_s
        if one.batches and one.batches.count and one.batches.mean_rows > 0:
            rows += one.batches.count * one.batches.mean_rows
    return work_s / rows if rows > 0 and work_s > 0 else math.nan


def _stretch(window: Sequence[Observation], interval_s: float, share: float) -> float:
    """What slow results took, usually, over what they take where batches are alike; at least 1.

    Of results the 95th percentile and the slowest are measured: the one counts for shares up to
    0.95, the other from 0.99 on, and between them something of both.
    """
    slowest = np.clip((share - _P95) / (_SLOWEST - _P95), 0.0, 1.0)
    ratios = [
        slowest * one.latency.max_s / (waited_s + batch_s)
        + (1 - slowest) * one.latency.p95_s / (_P95 * waited_s + batch_s)
        for one in window
        if one.latency is not None and one.batches is not None
        and one.latency.count > 0 and one.batches.count > 0
        and (batch_s := one.batches.mean_duration_s) > 0
        and (waited_s := max(interval_s, batch_s))
    ]  # fmt: skip
    return min(_MOST_STRETCH, max(1.0, float(np.median(ratios)))) if ratios else 1.0
