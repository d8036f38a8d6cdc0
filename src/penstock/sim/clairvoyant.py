"""The clairvoyant: the fewest executor-seconds that keep the promise, for one who knows the load.

Minimised over all sequences of sizes n(t), one for each period of the loop:

    sum of n(t) * period  +  start-up * sum of max(0, n(t) - n(t-1))

An executor costs from when it is asked for, serves a start-up time later, and goes at once. Subject
to: over the whole run, the stated share of the rows has a latency within the bound, by the flow of
micro-batches in `batch_flow`. Backlog is allowed, and is carried from period to period as the
length of a batch; so is lateness, where it buys most: the promise is one about all results.

The share is a budget of late rows over the run. Where a late row has a price, the sum of cost and
price times late rows is minimised by dynamic programming over period, size and batch length, which
is exact but for the grid of lengths. For every price, that minimum less the price of the late rows
that are allowed is a lower bound of the cost of any plan that keeps the share (weak duality).

A change may have a price of its own, whatever its size. The minimum is then of cost, late rows and
changes at their prices; less what a number of changes costs, it bounds every plan with no more.

The first period has the scenario's own number of executors, as the policies do, and none that is
asked for after it serves before its start-up is over.
"""

import math
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from penstock.sim.batch_flow import BatchFlow, log_grid, sizes_of
from penstock.sim.scenario import Scenario

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LOWEST_PRICE, FIRST_PRICE, HIGHEST_PRICE = 1e-6, 0.01, 1e4  # executor-seconds a late row
PRICE_TOLERANCE = 0.05


@dataclass(frozen=True)
class Plan:
    """Executors that serve in each period, what they cost, and how many rows that makes late."""

    sizes: tuple[int, ...]
    cost: float
    late_rows: float
    price: float
    at_least: float  # no plan that keeps the share costs less, its changes paid for, by the flow

    @property
    def changes(self) -> int:
        """How often another number serves than in the period before."""
        return int(np.count_nonzero(np.diff(self.sizes)))


class Clairvoyant:
    """Plans for a scenario, by the price of a late row in executor-seconds; and of a change."""

    def __init__(self, scenario: Scenario, change_price: float = 0.0) -> None:
        self.change_price = change_price
        self.flow = BatchFlow(scenario, sizes_of(scenario))
        self._spans_s = np.diff(self.flow.edges_s)
        self._startup_s = scenario.cluster.startup_s
        self._first = int(np.searchsorted(self.flow.sizes, scenario.cluster.executors))
        self._served_from = 1 + math.ceil(self._startup_s / scenario.period_s - 1e-9)
        self.allowed_rows = (1 - scenario.share) * float(self.flow.rows.sum())
        self.grid_s = log_grid(float(self.flow.overheads_s.min()), self.flow.longest_s)

    @cached_property
    def _tables(self) -> tuple[Ints, Floats, Floats]:
        """By period, size and batch length: the place on the grid it leads to, and late rows."""
        size, logs = np.arange(len(self.flow.sizes))[:, None], np.log(self.grid_s)
        shape = (len(self.flow.rows), len(size), len(logs))
        below, part, late = np.empty(shape, np.int64), np.empty(shape), np.empty(shape)
        for period in range(shape[0]):
            length_s, late[period] = self.flow.advance(period, self.grid_s, size)
            place = np.interp(np.log(length_s), logs, np.arange(shape[2]))
            below[period] = np.minimum(place.astype(np.int64), shape[2] - 2)
            part[period] = place - below[period]
        return below, part, late

    def plan(self, price: float) -> Plan:
        """The sizes that minimise cost plus `price` times late rows."""
        values = self._values(price)
        below, part, late = self._tables
        size, place, late_rows, chosen = self._first, 0.0, 0.0, list[int]()
        index = np.arange(len(self.flow.sizes))
        for period in range(len(late)):
            left = min(int(place), len(self.grid_s) - 2)
            weight = place - left
            after = _between(below[period] + part[period], left, weight)
            too_late = _between(late[period], left, weight)
            at = np.minimum(after.astype(np.int64), len(self.grid_s) - 2)
            ahead = values[period + 1]
            total = (
                self._cost(period)
                + price * too_late
                + (1 - (after - at)) * ahead[index, at] + (after - at) * ahead[index, at + 1]
                + self._change(period, size)
            )  # fmt: skip
            size = int(np.argmin(total))
            chosen.append(size)
            late_rows += float(too_late[size])
            place = float(after[size])
        sizes = self.flow.sizes[chosen]
        bound = float(values[0][self._first, 0]) - price * self.allowed_rows
        return Plan(tuple(sizes.tolist()), self.cost_of(sizes), late_rows, price, bound)

    def priced(self, change_price: float) -> "Clairvoyant":
        """The same where each change costs so much; what was worked out of the flow is kept."""
        assert self._tables  # worked out once, for all prices
        other = copy(self)
        other.change_price = change_price
        return other

    def late_rows_of(self, sizes: Ints) -> Floats:
        """Late rows of each of some plans, rows of (plans, periods), by the same tables."""
        below, part, late = self._tables
        chosen = np.searchsorted(self.flow.sizes, sizes)
        place, late_rows = np.zeros(len(sizes)), np.zeros(len(sizes))
        for period in range(len(late)):
            size = chosen[:, period]
            left = np.minimum(place.astype(np.int64), len(self.grid_s) - 2)
            weight = place - left
            after = below[period] + part[period]
            late_rows += (1 - weight) * late[period, size, left]
            late_rows += weight * late[period, size, left + 1]
            place = (1 - weight) * after[size, left] + weight * after[size, left + 1]
        return late_rows

    def cost_of(self, sizes: Ints) -> float:
        """Executor-seconds of a sequence of sizes, start-up included."""
        return float(self.costs_of(sizes).sum())

    def costs_of(self, sizes: Ints) -> Floats:
        """The same by period; a start-up is of the period in which its executor begins to serve."""
        started = np.maximum(np.diff(sizes, prepend=sizes[0]), 0)
        return np.asarray(sizes * self._spans_s + started * self._startup_s, dtype=np.float64)

    def cheapest(
        self, first_price: float = FIRST_PRICE, tolerance: float = PRICE_TOLERANCE
    ) -> Plan:
        """The cheapest plan that keeps the share by the flow; the most in time where none does.

        The price of a late row is looked for from `first_price` on, to within a tolerance.
        """
        low, high = 0.0, first_price
        best = self.plan(high)
        while best.late_rows > self.allowed_rows and high < HIGHEST_PRICE:
            low, high = high, high * 8
            best = self.plan(high)
        if best.late_rows > self.allowed_rows:
            return replace(best, at_least=best.cost)
        bound = best.at_least
        while high - low > tolerance * high and high > LOWEST_PRICE:
            middle = math.sqrt(low * high) if low > 0 else high / 8
            found = self.plan(middle)
            bound = max(bound, found.at_least)
            if found.late_rows > self.allowed_rows:
                low = middle
            else:
                high, best = middle, found
        return replace(best, at_least=bound)

    def _values(self, price: float) -> list[Floats]:
        """From each period on, the least cost by the size before it and the batch length."""
        below, part, late = self._tables
        rows = np.arange(len(self.flow.sizes))[:, None]
        ahead = np.zeros((len(self.flow.sizes), len(self.grid_s)))
        values = [ahead]
        steep = (self.flow.sizes * self._startup_s)[:, None]
        for period in range(len(late) - 1, -1, -1):
            at = below[period]
            low = ahead[rows, at]
            total = low + part[period] * (ahead[rows, at + 1] - low)
            total += self._cost(period)[:, None] + price * late[period]
            ahead = np.minimum.accumulate(total, axis=0)  # a smaller size, or the same
            if period == 0:
                ahead = total
            elif period >= self._served_from:
                greater = np.minimum.accumulate((total + steep)[::-1], axis=0)[::-1] - steep
                ahead = np.minimum(ahead, greater)
            if period and self.change_price:
                ahead = np.minimum(total, ahead + self.change_price)
            values.append(ahead)
        return values[::-1]

    def _cost(self, period: int) -> Floats:
        return np.asarray(self.flow.sizes * self._spans_s[period], dtype=np.float64)

    def _change(self, period: int, size: int) -> Floats:
        """What going over to each size costs; infinite where it cannot be."""
        more = np.maximum(self.flow.sizes - self.flow.sizes[size], 0)
        if period == 0:
            return np.where(np.arange(len(more)) == size, 0.0, np.inf)
        changed = np.where(np.arange(len(more)) == size, 0.0, self.change_price)
        if period < self._served_from:
            return np.where(more > 0, np.inf, changed)
        return np.asarray(more * self._startup_s + changed, dtype=np.float64)


def _between(table: Floats, left: int, weight: float) -> Floats:
    return np.asarray((1 - weight) * table[:, left] + weight * table[:, left + 1])
