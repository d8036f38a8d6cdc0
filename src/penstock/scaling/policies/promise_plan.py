"""How many executors over the next steps: the cheapest course that always has what is needed.

    minimise  sum over steps h of n(h)  +  price x (number of changes)
    such that n(h) >= need(h)

in executors and steps. Only its first step is carried out; the plan is made anew each period, so
what it says of later steps decides only whether an executor that is not needed now pays until it
is needed again.
"""

import numpy as np

from penstock.model.observation import Floats, Ints


def cheapest_course(now: int, needs: Ints, price: float, lasts: Ints | None = None) -> Ints:
    """Sizes of each step, by dynamic programming over the sizes that are ever worth having.

    >>> cheapest_course(3, np.array([1, 1, 3]), price=10.0).tolist()
    [3, 3, 3]
    >>> cheapest_course(3, np.array([1, 1, 3]), price=1.0).tolist()
    [1, 1, 3]
    """
    lasts = np.ones_like(needs) if lasts is None else lasts
    sizes = np.unique(np.concatenate([[now], needs]))
    change = price * (sizes[:, None] != sizes[None, :])  # from the row's size to the column's
    cost: Floats = np.where(sizes == now, 0.0, np.inf)
    came_from: list[Ints] = []
    for need, steps in zip(needs.tolist(), lasts.tolist(), strict=True):
        ways = cost[:, None] + change
        # Of equal ways the one that stays; of equal sizes the smaller, by argmin's order.
        best = ways.argmin(axis=0)
        stay = np.arange(len(sizes))
        best = np.where(ways[stay, stay] <= ways[best, stay], stay, best)
        came_from.append(best)
        cost = np.where(sizes >= need, ways[best, stay] + steps * sizes, np.inf)
    place = int(cost.argmin())
    course = []
    for best in reversed(came_from):
        course.append(int(sizes[place]))
        place = int(best[place])
    return np.array(course[::-1], dtype=np.int64)
