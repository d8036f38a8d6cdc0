"""Bounds that no policy can keep, as not even batches without any work would."""

import math

import numpy as np

from penstock.errors import InvalidInput
from penstock.model.batch_overhead import steady_latency_s
from penstock.sim.following import periods
from penstock.sim.scenario import Scenario

_CHANCE = 1e-6


def check_bound(scenario: Scenario) -> None:
    """Refuse a bound that batches without work would miss for more results than the share allows.

    Rows that come seldom find no batch under way, so a bound of one batch may do for them.
    """
    if scenario.sharing != "time":
        return
    empty_s, bound_s = _empty_batch_s(scenario), scenario.max_latency_s
    most = most_in_time(scenario)
    if most >= scenario.share - _CHANCE:
        return
    interval_s = scenario.batch.trigger_s
    needed_s = float(
        steady_latency_s(np.array(empty_s), np.array(0.0), scenario.share, interval_s)
    )  # fmt: skip
    waits = (
        f"rows wait up to {interval_s:g} s (batch.trigger) for it to begin"
        if interval_s > empty_s
        else "rows wait for the one before it"
    )
    percent = math.floor(1e4 * most + _CHANCE) / 100
    needed_s = math.ceil(1000 * needed_s - _CHANCE) / 1000
    raise InvalidInput(
        f"scenario.max_latency is {bound_s:g} s, but a batch without any row takes {empty_s:g} s "
        f"(batch) and {waits}: at most {percent:g}% of the results can be in time, and share "
        f"is {scenario.share:g}; give at least {needed_s:g} s."
    )


def most_in_time(scenario: Scenario) -> float:
    """At most this share of the results is in time, whatever is done.

    With O the time of an empty batch and c = max(I, O) that from the start of one to the next, a
    row that comes evenly within c is late if it waits for more than D - O. Of rows that come at
    the rate r some do not: the first of each batch back to back, which may have started it, and
    one of those that come in step with the trigger. That is one in r c at most.
    """
    empty_s, bound_s = _empty_batch_s(scenario), scenario.max_latency_s
    if bound_s < empty_s:
        return 0.0
    cycle_s = max(scenario.batch.trigger_s, empty_s)
    in_time = min(1.0, (bound_s - empty_s) / cycle_s)
    edges_s = np.linspace(0.0, scenario.duration_s, periods(scenario) + 1)
    rows = np.diff(sum(source.profile.rows_by(edges_s) for source in scenario.sources))
    if rows.sum() == 0:
        return 1.0
    chance = all(source.arrivals == "poisson" for source in scenario.sources)
    if scenario.batch.trigger_s > empty_s and chance:
        return in_time
    cycles = scenario.duration_s / len(rows) / cycle_s
    # Of r c rows of a cycle one more is in time.
    found = np.minimum(rows, rows * in_time + cycles)
    return float(found.sum() / rows.sum())


def _empty_batch_s(scenario: Scenario) -> float:
    """O(K) of the size that has the least."""
    cluster = scenario.cluster
    sizes = range(cluster.min_executors, cluster.max_executors + 1)
    return min(scenario.batch.overhead_at(0.0, size * cluster.slots) for size in sizes)
