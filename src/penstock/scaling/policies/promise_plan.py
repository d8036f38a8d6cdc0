"""How many executors over the next steps: the cheapest course that always has what is needed.

    minimise  sum over steps h of n(h)  +  act x (number of changes)  +  start x (executors added)
    such that n(h) >= need(h), or n(h) = n(0) >= enough(h)

in executors and periods. To stay, what there is must be enough; what is changed is made as large as
is needed, which is a little more: so a need that wavers does not change anything.

Only its first step is carried out; the plan is made anew each period, so what it says of later
steps decides only whether an executor that is not needed now pays until it is needed again, and
whether more come at once. One that would have to start again before it has saved its start-up is
never let go: that is the break-even rule.
"""

from dataclasses import dataclass

import numpy as np

from penstock.model.observation import Floats, Ints


@dataclass(frozen=True)
class Prices:
    """What a change costs, in executors times periods."""

    act: float  # any change, whatever its size
    start: float = 0.0  # each executor that is added

    def of(self, before: Ints, after: Ints) -> Floats:
        """Going from the one number to the other."""
        added = np.maximum(0, after - before)
        paid: Floats = self.act * (before != after) + self.start * added
        return paid


def cheapest_course(
    now: int, needs: Ints, prices: Prices, lasts: Ints | None = None, enough: Ints | None = None
) -> Ints:
    """Sizes of each step, by dynamic programming over the sizes that are ever worth having.

    >>> cheapest_course(3, np.array([1, 1, 3]), Prices(act=10.0)).tolist()
    [3, 3, 3]
    >>> cheapest_course(3, np.array([1, 1, 3]), Prices(act=1.0)).tolist()
    [1, 1, 3]
    """
    lasts = np.ones_like(needs) if lasts is None else lasts
    enough = needs if enough is None else enough
    sizes = np.unique(np.concatenate([[now], needs]))
    change = prices.of(sizes[:, None], sizes[None, :])  # from the row's size to the column's
    cost: Floats = np.where(sizes == now, 0.0, np.inf)
    came_from: list[Ints] = []
    for need, stays, steps in zip(needs.tolist(), enough.tolist(), lasts.tolist(), strict=True):
        ways = cost[:, None] + change
        # Of equal ways the one that stays; of equal sizes the smaller, by argmin's order.
        best = ways.argmin(axis=0)
        stay = np.arange(len(sizes))
        best = np.where(ways[stay, stay] <= ways[best, stay], stay, best)
        came_from.append(best)
        allowed = sizes >= np.where(sizes == now, min(stays, need), need)
        cost = np.where(allowed, ways[best, stay] + steps * sizes, np.inf)
    place = int(cost.argmin())
    course = []
    for best in reversed(came_from):
        course.append(int(sizes[place]))
        place = int(best[place])
    return np.array(course[::-1], dtype=np.int64)
