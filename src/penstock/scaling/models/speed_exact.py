"""The best split of a few processors of unequal speed, by dynamic programming.

E[T] is a sum over components, and processors of one speed are alike. So with r the processors that
are left, as a count for each speed,

    V_i(r) = min over v <= r of  part_i(v) + V_{i+1}(r - v)
"""

import math
from collections.abc import Callable, Sequence
from itertools import product

Counts = tuple[int, ...]


def work_of(counts: Counts) -> int:
    """Pairs of what is left and what is taken of it: the cost of the program, per component."""
    return math.prod((count + 1) * (count + 2) // 2 for count in counts)


def best_split(
    part: Callable[[int, Counts], float], counts: Counts, components: int
) -> list[Counts]:
    """The counts of each component that make the sum of the parts least."""
    states = list(product(*(range(count + 1) for count in counts)))
    worth = dict.fromkeys(states, 0.0)
    taken: list[dict[Counts, Counts]] = []
    for i in reversed(range(components)):
        costs = {state: part(i, state) for state in states}
        after, worth = worth, {}
        chosen: dict[Counts, Counts] = {}
        for left in states:
            worth[left], chosen[left] = min(
                (costs[v] + after[_less(left, v)], v)
                for v in product(*(range(count + 1) for count in left))
            )
        taken.append(chosen)
    left, found = counts, []
    for chosen in reversed(taken):
        found.append(chosen[left])
        left = _less(left, chosen[left])
    return found


def _less(left: Sequence[int], taken: Sequence[int]) -> Counts:
    return tuple(a - b for a, b in zip(left, taken, strict=True))
