"""How much state a component would move: the rule that prices every adaptation alike."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.model.observation import Floats, Ints

Flags = NDArray[np.bool_]
TOLERANCE = 0.2  # share of the mean


@dataclass(frozen=True)
class RebalancingRule:
    """When a component is rescaled and rebalanced.

    Guo and Zhou 2017, s. 2.1, name both and give no rule.

    `capacity_rows` is what one instance takes in a window; `tolerance` is how far an instance may
    be from the mean before key groups are moved.
    """

    capacity_rows: float
    tolerance: float = TOLERANCE


def state_moves(load_rows: Floats, state_rows: Floats, rule: RebalancingRule) -> Floats:
    """psi of many components at once: rows of state moved over all windows.

    Guo and Zhou 2017, s. 4.1.

    Both histograms are components x windows x key groups. Each component starts with its key
    groups hashed over the instances its first window needs. In each window it takes
    ceil(load / capacity) instances, empties those it gives up, then moves key groups from the
    fullest to the emptiest instance, each time the one nearest to half their difference, while an
    instance is outside the tolerance and a move narrows the difference. A moved key group costs
    its state of that window.
    """
    components, windows, groups = load_rows.shape
    totals = load_rows.sum(axis=2)
    # A hair below the quotient, so that a load of exactly n capacities needs n instances.
    needed = np.ceil(totals / rule.capacity_rows - 1e-9)
    instances = np.clip(needed, 1, groups).astype(np.int64)
    moved = np.zeros(components)
    # With one instance throughout there is nowhere to move to: true of most small components.
    several = np.flatnonzero(instances.max(axis=1, initial=1) > 1)
    if several.size == 0:
        return moved
    instances = instances[several]
    place = np.arange(groups) % instances[:, :1]
    for window in range(windows):
        load, state = load_rows[several, window], state_rows[several, window]
        moved[several] += _rebalance(load, state, instances[:, window], place, rule.tolerance)
    return moved


def _rebalance(
    load: Floats, state: Floats, instances: Ints, place: Ints, tolerance: float
) -> Floats:
    """Bring `place` (changed here) within the tolerance; the state moved for each component."""
    components, groups = load.shape
    width = int(max(instances.max(), place.max() + 1))
    slots = (np.arange(components)[:, None] * width + place).ravel()
    sums = np.bincount(slots, load.ravel(), components * width)
    held = sums.reshape(components, width).astype(np.float64)
    closed = np.arange(width) >= instances[:, None]
    mean = load.sum(axis=1) / instances
    moved = np.zeros(components)
    high = np.where(closed, -1.0, held).max(axis=1)
    low = np.where(closed, np.inf, held).min(axis=1)
    outside = (high > (1 + tolerance) * mean) | (low < (1 - tolerance) * mean)
    rows = np.flatnonzero(outside | (place.max(axis=1) >= instances))
    for _ in range(2 * groups):
        if rows.size == 0:
            break
        group, target, go = _next_moves(
            load[rows], held[rows], closed[rows], place[rows], mean[rows], tolerance
        )
        rows, group, target = rows[go], group[go], target[go]
        held[rows, place[rows, group]] -= load[rows, group]
        held[rows, target] += load[rows, group]
        place[rows, group] = target
        moved[rows] += state[rows, group]
    return moved


def _next_moves(
    load: Floats, held: Floats, closed: Flags, place: Ints, mean: Floats, tolerance: float
) -> tuple[Ints, Ints, Flags]:
    """For each component the key group to move, where to, and whether to move at all."""
    open_held = np.where(closed, -1.0, held)
    source, high = open_held.argmax(axis=1), open_held.max(axis=1)
    open_held = np.where(closed, np.inf, held)
    target, low = open_held.argmin(axis=1), open_held.min(axis=1)
    homeless = np.take_along_axis(closed, place, axis=1)
    draining: Flags = np.any(homeless, axis=1)
    gap = (high - low).reshape(-1, 1)
    movable = (place == source.reshape(-1, 1)) & (load > 0) & (load < gap)
    narrowing = np.where(movable, np.abs(load - gap / 2), np.inf)
    heaviest_homeless = np.where(homeless, -load, np.inf)
    score = np.where(draining.reshape(-1, 1), heaviest_homeless, narrowing)
    outside = (high > (1 + tolerance) * mean) | (low < (1 - tolerance) * mean)
    go: Flags = np.isfinite(score.min(axis=1)) & (draining | outside)
    return score.argmin(axis=1), target, go
