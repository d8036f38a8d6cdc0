"""The arbiter: processors of one cluster for each of its topologies.

1. Where all promises can be kept: with the fewest processors.
2. Where not: the largest weight of kept promises; of such choices one in which the fewest have rows
   that pile up, and the largest lateness (latency over bound) of the others is least; what is left
   goes to the latest.
3. Nobody has less than its minimum. What was given before stays where it is nearly as good.

Exact but for two things. Where topologies times processors are very many, the kept weight may be
below the best by less than one topology's weight (`knapsack`), and the search for the least
lateness ends early. And of several choices with the same largest lateness, the next largest may
differ.
"""

import math
from dataclasses import dataclass

import numpy as np

from penstock.model.decision import Decision
from penstock.sharing.claims import UNKNOWN, Bools, Claims, Division, Ints
from penstock.sharing.explain import explained
from penstock.sharing.knapsack import MOST_CELLS, Items, best_steps
from penstock.sharing.water_filling import filled

MARGIN = 0.1  # by which another division must be better before anything is taken from anyone
_UNITS = 1000  # of weights: they are compared as whole numbers
_MOST_SEARCHED = 2_000_000  # cells of all tables in the search for the least lateness


@dataclass(frozen=True)
class Cluster:
    """What there is to divide, and how it was divided before."""

    processors: int
    slots: int = 1  # processors of an executor
    previous: Division | None = None
    margin: float = MARGIN


def divide(claims: Claims, cluster: Cluster) -> Decision[Division]:
    """Who gets how many, executors wanted in all, who is missed, and why."""
    if not claims.names:
        return Decision(Division({}, 0, (), {}), ("there is no topology",))
    room = cluster.processors - int(claims.least.sum())
    extra = _extra(claims, cluster, room)
    division = _division(claims, cluster, extra)
    reasons, infeasible = explained(claims, cluster.processors, division)
    return Decision(division, reasons, infeasible)


def _extra(claims: Claims, cluster: Cluster, room: int) -> Ints:
    """Processors beyond the minimum."""
    if room <= 0:
        return np.zeros(len(claims.names), dtype=np.int64)
    before = _before(claims, cluster.previous)
    if claims.keepable.all():
        for needed in (_settled_need(claims, before, cluster.margin), claims.need):
            if int(needed.sum()) <= room:
                return needed
    found = _scarce(claims, cluster, room)
    stays = (before != UNKNOWN).all() and int(before.sum()) <= int(found.sum())
    if stays and _nearly_as_good(claims, before, found, cluster):
        return before
    return found


def _before(claims: Claims, previous: Division | None) -> Ints:
    """What each had beyond its minimum, as far as it may have that now."""
    given = previous.processors if previous is not None else {}
    had = np.array([given.get(name, UNKNOWN) for name in claims.names], dtype=np.int64)
    extra = had - claims.least
    known = (had != UNKNOWN) & (extra >= 0) & (extra < claims.expected_s.shape[1])
    return np.where(known, extra, UNKNOWN)


def _settled_need(claims: Claims, before: Ints, margin: float) -> Ints:
    """What keeps the promise; fewer than before only where that keeps it with room to spare."""
    sparing = claims.extra_for(1.0 - margin)
    keeps = (before != UNKNOWN) & (claims.lateness_at(before) <= 1.0)
    return np.where(keeps & (before > claims.need), np.minimum(before, sparing), claims.need)


def _scarce(claims: Claims, cluster: Cluster, room: int) -> Ints:
    """The most weight kept, then the least lateness."""
    weight = _weights(claims, cluster)
    steps, extra = _kept_and_filled(claims, weight, claims.extra_for(_FINITE), room)
    open_items = int(((claims.need > 0) & (steps < 2)).sum()) + int((steps == 2).sum())
    searches = min(64, _MOST_SEARCHED // max(1, open_items * (room + 1)))
    if open_items * (room + 1) > MOST_CELLS:
        return extra
    value = _items(claims, weight, claims.extra_for(_FINITE), room).value(steps)
    lateness = claims.lateness
    levels = np.unique(lateness[np.isfinite(lateness) & (lateness > 1.0)])
    low, high = 0, int(np.searchsorted(levels, _largest(claims, extra)))
    while low < high and searches > 0:
        middle, searches = (low + high) // 2, searches - 1
        reach = claims.extra_for(levels[middle])
        items = _items(claims, weight, reach, room)
        found = best_steps(items, room)
        if items.value(found) >= value:
            extra = _fill(claims, items, found, room)
            high = int(np.searchsorted(levels, _largest(claims, extra)))
        else:
            low = middle + 1
    return extra


_FINITE = float(np.finfo(np.float64).max)


def _kept_and_filled(claims: Claims, weight: Ints, reach: Ints, room: int) -> tuple[Ints, Ints]:
    items = _items(claims, weight, reach, room)
    steps = best_steps(items, room)
    return steps, _fill(claims, items, steps, room)


def _fill(claims: Claims, items: Items, steps: Ints, room: int) -> Ints:
    costs = np.where(steps == 2, items.second_cost, items.first_cost)
    extra = np.where(steps > 0, costs, 0)
    return filled(claims, extra, np.flatnonzero(steps < 2), room - int(extra.sum()))


def _items(claims: Claims, weight: Ints, reach: Ints, room: int) -> Items:
    """Each may be brought to a lateness (reach), which counts one, or keep its promise."""
    never, width = room + 1, claims.expected_s.shape[1]
    count = len(claims.names)
    return Items(
        np.where(reach < width, reach, never),
        np.ones(count, dtype=np.int64),
        np.where(claims.keepable, claims.need, never),
        weight * (count + 1) + 1,
    )


def _weights(claims: Claims, cluster: Cluster) -> Ints:
    """Whole numbers; promises that were kept before weigh more, so that two near ones stay."""
    kept = set(cluster.previous.kept) if cluster.previous is not None else set()
    bonus = np.array([1.0 + cluster.margin * (name in kept) for name in claims.names])
    units: Ints = np.maximum(1, np.rint(claims.weight * bonus * _UNITS)).astype(np.int64)
    return units


def _largest(claims: Claims, extra: Ints) -> float:
    """The largest lateness that is a number; 1 where nobody is late."""
    late = claims.lateness_at(extra)
    return float(np.max(late, initial=1.0, where=np.isfinite(late)))


def _nearly_as_good(claims: Claims, before: Ints, found: Ints, cluster: Cluster) -> bool:
    """Whether nothing is kept or bounded that was not, and nobody much later."""
    was, now = claims.lateness_at(before), claims.lateness_at(found)
    weight = _weights(claims, cluster)
    kept = int(weight[was <= 1.0].sum()) >= int(weight[now <= 1.0].sum())
    bounded = int(np.isfinite(was).sum()) >= int(np.isfinite(now).sum())
    near = _largest(claims, before) <= (1 + cluster.margin) * _largest(claims, found)
    return kept and bounded and near


def _division(claims: Claims, cluster: Cluster, extra: Ints) -> Division:
    processors = claims.least + extra
    lateness: Bools = claims.lateness_at(extra) <= 1.0
    expected = claims.lateness_at(extra) * claims.bound_s
    return Division(
        dict(zip(claims.names, processors.tolist(), strict=True)),
        math.ceil(int(processors.sum()) / cluster.slots),
        tuple(name for name, kept in zip(claims.names, lateness, strict=True) if kept),
        {
            name: float(latency_s)
            for name, kept, latency_s in zip(claims.names, lateness, expected, strict=True)
            if not kept
        },
    )
