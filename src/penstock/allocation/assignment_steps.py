"""Every move and exchange from one placement, compared at once (see resource_aware.py)."""

import numpy as np

from penstock.allocation.assignment import Assignment
from penstock.allocation.problem import TOLERANCE, Bools, Floats, Ints, summed_by


class Steps:
    """What every move and exchange from one placement would change, all at once."""

    def __init__(self, assignment: Assignment, placement: Ints) -> None:
        self._assignment, self._placement = assignment, placement
        problem = assignment.problem
        nodes = len(problem.capacity)
        self._affinity = assignment.weight @ (placement[:, None] == np.arange(nodes))
        self._usage = assignment.usage(placement)
        self._used = [summed_by(placement, one.use, nodes) for one in problem.resources]
        self._spent = problem.cost(placement)

    def moved(self, groups: Ints) -> tuple[Floats, Floats, Floats]:
        """What each group on each node would change: excess, traffic and variance of usage."""
        problem, at = self._assignment.problem, self._placement[groups]
        over = np.zeros((len(groups), len(problem.capacity)))
        for resource, used in zip(problem.resources, self._used, strict=True):
            use = resource.use[groups][:, None]
            gained = excess(used + use, resource.limit) - excess(used, resource.limit)
            left = excess(used[at][:, None] - use, resource.limit[at][:, None])
            left -= excess(used[at], resource.limit[at])[:, None]
            over += gained + left
        own = self._affinity[groups]
        traffic = np.take_along_axis(own, at[:, None], 1) - own
        use, whole = self._assignment.cpu.use[groups][:, None], self._assignment.whole
        variance = self._variance_change(
            at[:, None], np.arange(len(whole)), use / whole[at][:, None], use / whole
        )
        return over, traffic, variance

    def _variance_change(self, left: Ints, gained: Ints, less: Floats, more: Floats) -> Floats:
        """When usage falls by `less` on one node and rises by `more` on another."""
        opened = self._assignment.problem.open
        nodes = int(opened.sum())
        less, more = np.where(opened[left], less, 0.0), np.where(opened[gained], more, 0.0)
        squares = more * (2 * self._usage[gained] + more) - less * (2 * self._usage[left] - less)
        mean = float(self._usage[opened].mean())
        shift = (more - less) / nodes
        return squares / nodes - shift * (2 * mean + shift)

    def best_move(self, groups: Ints) -> Ints | None:
        """The placement after the best single move, or None where none is allowed."""
        problem = self._assignment.problem
        at = self._placement[groups]
        nodes = np.arange(len(problem.capacity))
        homes, price = problem.home[groups], problem.move_cost[groups]
        then = np.where(nodes == homes[:, None], 0.0, price[:, None])
        cost = then - np.where(at == homes, 0.0, price)[:, None]
        allowed = (nodes != at[:, None]) & problem.open & self._affordable(cost)
        found = self._lowest(self.moved(groups), allowed)
        if found is None:
            return None
        group, node = np.unravel_index(found, allowed.shape)
        after = self._placement.copy()
        after[groups[group]] = node
        return after

    def best_exchange(self, groups: Ints) -> Ints | None:
        """The placement after the best exchange of two, or None where none is allowed."""
        problem, at = self._assignment.problem, self._placement[groups]
        _, traffic, _ = self.moved(groups)
        between = self._assignment.weight[np.ix_(groups, groups)]
        traffic = traffic[:, at] + traffic[:, at].T + 2 * between
        over = np.zeros_like(traffic)
        for resource, used in zip(problem.resources, self._used, strict=True):
            use, limit = resource.use[groups], resource.limit[at]
            gained = use[None, :] - use[:, None]  # of the first one's node
            here = excess(used[at][:, None] + gained, limit[:, None])
            here -= excess(used[at], limit)[:, None]
            over += here + here.T
        cpu, whole = self._assignment.cpu.use[groups], self._assignment.whole[at]
        shift = cpu[:, None] - cpu[None, :]  # leaves the first one's node
        variance = self._variance_change(
            at[:, None], at[None, :], shift / whole[:, None], shift / whole[None, :]
        )
        homes = problem.home[groups]
        then = np.where(at[None, :] == homes[:, None], 0.0, problem.move_cost[groups][:, None])
        cost = then - np.where(at == homes, 0.0, problem.move_cost[groups])[:, None]
        opened = problem.open[at]
        allowed = (at[:, None] != at[None, :]) & opened[:, None] & opened[None, :]
        allowed &= self._affordable(cost + cost.T)
        found = self._lowest((over, traffic, variance), allowed)
        if found is None:
            return None
        one, other = np.unravel_index(found, allowed.shape)
        after = self._placement.copy()
        after[groups[one]], after[groups[other]] = at[other], at[one]
        return after

    def _affordable(self, cost: Floats) -> Bools:
        most: Bools = self._spent + cost <= self._assignment.problem.max_migration_cost + TOLERANCE
        return most

    def _lowest(self, changes: tuple[Floats, Floats, Floats], allowed: Bools) -> int | None:
        if not allowed.any():
            return None
        over, traffic, variance = changes
        first, second = self._assignment.levels(traffic, variance)
        keys = [np.round(one, 9).ravel() for one in (second, first, over)]
        return int(np.lexsort((*keys, ~allowed.ravel()))[0])


def excess(used: Floats, limit: Floats) -> Floats:
    """By how much a limit is exceeded, as a share of it."""
    over: Floats = np.maximum(used - limit, 0.0) / np.maximum(limit, TOLERANCE)
    return over
