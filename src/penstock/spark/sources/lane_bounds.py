"""No more lanes than allowed: what was meant for others is dealt so that all carry alike.

Streams of the lightest lanes, which are given up, go back to the lane they come from as far as it
then carries no more than its share, as each other place is a redirection; the rest goes where
least is carried.
"""

from dataclasses import dataclass

import numpy as np

from penstock.model.observation import Floats, Ints
from penstock.spark.sources.settings import Limits

TOLERANCE = 0.05  # beyond its share, before a stream must go elsewhere


@dataclass(frozen=True)
class Bounded:
    """The lane of each stream, with what was done to it and what cannot be met."""

    lane: Ints
    reasons: tuple[str, ...] = ()
    infeasible: str | None = None


def within_bounds(lane: Ints, before: Ints, need_per_s: Floats, limits: Limits) -> Bounded:
    """At most `lanes_max` lanes; `before` is where streams were."""
    used, of = np.unique(lane, return_inverse=True)
    surplus = len(used) - limits.lanes_max
    if surplus <= 0:
        return Bounded(lane)
    old = np.isin(used, before)  # lanes that are new are given up first
    load = np.bincount(of, need_per_s, len(used))
    given_up = np.lexsort((load, old))[:surplus]
    moving = np.flatnonzero(np.isin(of, given_up))
    kept = np.delete(used, given_up)
    chosen = lane.copy()
    chosen[moving] = kept[_dealt(moving, before, need_per_s, kept, np.delete(load, given_up))]
    carried = np.bincount(np.searchsorted(kept, chosen), need_per_s, len(kept))
    reason = (
        f"{len(used)} lanes were wanted and lanes_max is {limits.lanes_max}: they share, and what "
        "they cannot take stays queued"
    )
    over = int(np.count_nonzero(carried > limits.lane_capacity_per_s))
    said = (
        f"{over} of {limits.lanes_max} lanes need more than their {limits.lane_capacity_per_s:g} "
        f"per s, and lanes_max is {limits.lanes_max}; raise it, or lane_capacity."
    )
    return Bounded(chosen, (reason,), said if over else None)


def _dealt(moving: Ints, before: Ints, need_per_s: Floats, kept: Ints, load_per_s: Floats) -> Ints:
    """The place in `kept` of each stream that moves."""
    moving_per_s = need_per_s[moving]
    share = _water_level(load_per_s, float(moving_per_s.sum()))
    place = np.minimum(np.searchsorted(kept, before[moving]), len(kept) - 1)
    home = kept[place] == before[moving]
    order = np.lexsort((-moving_per_s, place))
    ordered = np.where(home, moving_per_s, 0.0)[order]
    so_far = np.cumsum(ordered)
    first = np.searchsorted(place[order], place[order])
    so_far -= (so_far - ordered)[first]
    fits = load_per_s[place[order]] + so_far <= share * (1 + TOLERANCE)
    stays = np.zeros(len(moving), dtype=bool)
    stays[order] = fits
    stays &= home
    load = load_per_s + np.bincount(place[stays], moving_per_s[stays], len(kept))
    rest = np.flatnonzero(~stays)
    rest = rest[np.argsort(-moving_per_s[rest], kind="stable")]
    room = np.maximum(_water_level(load, float(moving_per_s[rest].sum())) - load, 0.0)
    middle = np.cumsum(moving_per_s[rest]) - 0.5 * moving_per_s[rest]
    place[rest] = np.minimum(np.searchsorted(np.cumsum(room), middle), len(kept) - 1)
    return place


def _water_level(load: Floats, more: float) -> float:
    """How high all are once `more` was dealt to the lowest."""
    ordered = np.sort(load)
    count = np.arange(1, len(load) + 1)
    levels = (np.cumsum(ordered) + more) / count
    return float(levels[np.flatnonzero(levels >= ordered)[-1]])
