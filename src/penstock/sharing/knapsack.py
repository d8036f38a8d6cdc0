"""Which promises to keep where not all can be: a knapsack in which an item may also go in half.

Each item may take its first step or its second, at a cost and for a value each; costs and values of
second steps are not smaller. Solved by dynamic programming over the capacity, one pass over an
array for each item:

    f(i, c) = max over steps s of  value(i, s) + f(i - 1, c - cost(i, s))

Where items times capacity are too many for that, only the items around the one at which the greedy
order by value for cost runs out of room are decided so (the core of Balas and Zemel 1980). What is
found is then below the best by less than the value of one item, as the greedy order itself is.
"""

from dataclasses import dataclass

import numpy as np

from penstock.sharing.claims import Ints

MOST_CELLS = 400_000  # of a table: items times capacity


@dataclass(frozen=True)
class Items:
    """Costs and values of the first and the second step of each item."""

    first_cost: Ints
    first_value: Ints
    second_cost: Ints
    second_value: Ints

    def taken(self, which: Ints) -> "Items":
        """Some of them."""
        columns = (self.first_cost, self.first_value, self.second_cost, self.second_value)
        return Items(*(column[which] for column in columns))

    def cost(self, steps: Ints) -> int:
        """What the steps that were chosen cost."""
        costs = np.where(steps == 2, self.second_cost, self.first_cost)
        return int(costs[steps > 0].sum())

    def value(self, steps: Ints) -> int:
        """What the steps that were chosen are worth."""
        values = np.where(steps == 2, self.second_value, self.first_value)
        return int(values[steps > 0].sum())


def best_steps(items: Items, capacity: int, most_cells: int = MOST_CELLS) -> Ints:
    """The step of each item, 0 for none: the most value, and then the least cost.

    >>> one = np.array([1, 1]); two = np.array([3, 4])
    >>> best_steps(Items(one, one, two, 10 * two), 5).tolist()
    [1, 2]
    """
    steps = np.where(items.second_cost == 0, 2, np.where(items.first_cost == 0, 1, 0))
    fits = np.minimum(items.first_cost, items.second_cost) <= capacity
    open_items = np.flatnonzero((items.second_cost > 0) & fits)
    if len(open_items) * (capacity + 1) <= most_cells:
        chosen = items.taken(open_items)
        steps[open_items] = _by_table(chosen, min(capacity, int(chosen.second_cost.sum())))
    else:
        steps[open_items] = _around_the_break(items.taken(open_items), capacity, most_cells)
    return np.asarray(steps, dtype=np.int64)


def _by_table(items: Items, capacity: int) -> Ints:
    count = len(items.first_cost)
    best = np.zeros(capacity + 1, dtype=np.int64)
    choice = np.zeros((count, capacity + 1), dtype=np.int8)
    columns = (
        (1, items.first_cost.tolist(), items.first_value.tolist()),
        (2, items.second_cost.tolist(), items.second_value.tolist()),
    )
    for item in range(count):
        before = best.copy()
        for step, costs, values in columns:
            cost = costs[item]
            if cost > capacity:
                continue
            offered = before[: capacity + 1 - cost] + values[item]
            better = offered > best[cost:]
            best[cost:][better] = offered[better]
            choice[item, cost:][better] = step
    room = int(best.argmax())  # the first of equal values: the least cost
    steps = np.zeros(count, dtype=np.int64)
    for item in range(count - 1, -1, -1):
        step = int(choice[item, room])
        steps[item] = step
        room -= (0, columns[0][1][item], columns[1][1][item])[step]
    return steps


def _around_the_break(items: Items, capacity: int, most_cells: int) -> Ints:
    """By value for cost; the last that fit and the first that do not are decided exactly."""
    worth = items.second_value / np.maximum(1, items.second_cost)
    order = np.argsort(-worth, kind="stable")
    used = np.cumsum(items.second_cost[order])
    fitting = int(np.searchsorted(used, capacity, side="right"))
    half = _half_width(items.second_cost[order], fitting, capacity, most_cells)
    begin, end = max(0, fitting - half), min(len(order), fitting + half)
    room = capacity - (int(used[begin - 1]) if begin else 0)
    steps = np.zeros(len(order), dtype=np.int64)
    steps[order[:begin]] = 2
    if (end - begin) * (room + 1) <= most_cells:
        core = order[begin:end]
        steps[core] = _by_table(items.taken(core), room)
    else:  # not even a few: what fits in this order
        for item in order[begin:].tolist():
            if items.second_cost[item] <= room:
                steps[item] = 2
                room -= int(items.second_cost[item])
    room = capacity - items.cost(steps)
    rest = np.flatnonzero(steps == 0)
    cheapest = rest[np.argsort(items.first_cost[rest], kind="stable")]
    some = np.cumsum(items.first_cost[cheapest]) <= room
    steps[cheapest[some]] = 1
    return steps


def _half_width(costs: Ints, fitting: int, capacity: int, most_cells: int) -> int:
    """Items on each side of the break whose table is small enough."""
    half = 1
    while True:
        wider = 2 * half
        begin = max(0, fitting - wider)
        room = capacity - int(costs[:begin].sum())
        if 2 * wider * (room + 1) > most_cells or wider > len(costs):
            return half
        half = wider
