"""How much state a component would move: the rule that prices every adaptation alike."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.model.observation import Floats, Ints


@dataclass(frozen=True)
class RebalancingRule:
    """When a component is rescaled and rebalanced (seed 001 s.2.1 names both, and gives no rule).

    `capacity_rows` is what one instance takes in a window; `tolerance` is how far an instance may
    be from the mean before key groups are moved.
    """

    capacity_rows: float
    tolerance: float = 0.2


def state_moves(load_rows: Floats, state_rows: Floats, rule: RebalancingRule) -> Floats:
    """psi of many components at once: rows of state moved over all windows (seed 001 s.4.1).

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
    place = np.arange(groups) % instances[:, :1]
    moved = np.zeros(components)
    for window in range(windows):
        load, state = load_rows[:, window], state_rows[:, window]
        moved += _rebalance(load, state, instances[:, window], place, rule.tolerance)
    return moved


def _rebalance(
    load: Floats, state: Floats, instances: Ints, place: Ints, tolerance: float
) -> Floats:
    """Bring `place` (changed here) within the tolerance; the state moved for each component."""
    components, groups = load.shape
    width = int(max(instances.max(), place.max() + 1))
    slots = (np.arange(components)[:, None] * width + place).ravel()
    held = np.bincount(slots, load.ravel(), components * width).reshape(components, width)
    closed = np.arange(width) >= instances[:, None]
    mean = load.sum(axis=1) / instances
    moved = np.zeros(components)
    rows = np.arange(components)
    for _ in range(2 * groups):
        fullest = np.where(closed[rows], -1.0, held[rows])
        source, high = fullest.argmax(axis=1), fullest.max(axis=1)
        emptiest = np.where(closed[rows], np.inf, held[rows])
        target, low = emptiest.argmin(axis=1), emptiest.min(axis=1)
        homeless = np.take_along_axis(closed[rows], place[rows], axis=1)
        draining: NDArray[np.bool_] = np.any(homeless, axis=1)
        gap = (high - low).reshape(-1, 1)
        movable = (place[rows] == source[:, None]) & (load[rows] > 0) & (load[rows] < gap)
        narrowing = np.where(movable, np.abs(load[rows] - gap / 2), np.inf)
        heaviest_homeless = np.where(homeless, -load[rows], np.inf)
        score = np.where(draining[:, None], heaviest_homeless, narrowing)
        group, best = score.argmin(axis=1), score.min(axis=1)
        outside = (high > (1 + tolerance) * mean[rows]) | (low < (1 - tolerance) * mean[rows])
        go = np.isfinite(best) & (draining | outside)
        rows, group, target = rows[go], group[go], target[go]
        if rows.size == 0:
            break
        held[rows, place[rows, group]] -= load[rows, group]
        held[rows, target] += load[rows, group]
        place[rows, group] = target
        moved[rows] += state[rows, group]
    return moved
