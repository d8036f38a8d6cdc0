"""A load distance that no placement within the budget can beat, proven without a solver.

For a distance d every node must end inside its window capacity (mean +- d). A node that gives
away a key groups and takes b can only reach loads between two sums of largest and smallest key
groups; which (a, b) reach the window is a small table per node. Moves given and moves taken are
equal in number, so for every lambda in [-1/2, 1/2] the number of moves is at least

    sum over nodes of  min over (a, b) that reach the window of  (1/2 + lambda) a + (1/2 - lambda) b

(a Lagrangian bound). The smallest d for which that is within the budget is the bound. Where moves
differ in cost, the dearest-load-per-cost key groups, taken in fractions, give the least cost of
leaving or entering each window instead. Reference: the relaxation is ours; the program it bounds
is Madsen et al. 2017, s. 4.3.1.
"""

import math

import numpy as np

from penstock.allocation.problem import NOWHERE, TOLERANCE, AllocationProblem, Floats, Ints

MOST_MOVES = 24  # distinguished per node and direction; the last class stands for "this or more"
LAMBDAS = np.linspace(-0.5, 0.5, 9)
STEPS = 30


def load_distance_bound(problem: AllocationProblem, *, drained: bool = False) -> float:
    """The greatest d that is proven unreachable from below; 0 when nothing is proven.

    With `drained` it is proven only for placements that empty every draining node.
    """
    if len(problem.load) == 0 or problem.all_draining:
        return 0.0
    relaxation = _Relaxation(problem, drained)
    may_hold = problem.open if drained else np.ones_like(problem.open)
    heaviest = float(problem.load.max() / problem.capacity[may_hold].max())
    low = max(0.0, heaviest - problem.mean)
    if relaxation.affordable(low):
        return low
    high = max(problem.mean, float(problem.total / problem.capacity.min()), low) + 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        if relaxation.affordable(middle):
            high = middle
        else:
            low = middle
    return low


class _Relaxation:
    def __init__(self, problem: AllocationProblem, drained: bool) -> None:
        self._problem, self._drained = problem, drained
        settled = problem.home != NOWHERE
        self._free_load = float(problem.load[~settled].sum())
        self._totals = problem.totals(problem.home)
        self._by_count = bool(np.all(problem.migration_cost == problem.migration_cost[0]))
        self._unit = float(problem.migration_cost[0])
        if self._by_count:
            self._make_reach()
        else:
            self._ratio = problem.load / np.maximum(problem.move_cost, TOLERANCE)

    def affordable(self, d: float) -> bool:
        """Whether the relaxed program has a solution of distance d within the budget."""
        problem = self._problem
        low = np.where(problem.open, problem.capacity * (problem.mean - d), -np.inf)
        high = problem.capacity * (problem.mean + d)
        if self._drained:
            high = np.where(problem.open, high, 0.0)
        slack = TOLERANCE * (1.0 + abs(problem.mean))
        if self._by_count:
            cost = self._least_moves(low - slack, high + slack) * self._unit
        else:
            cost = self._least_cost(low - slack, high + slack)
        return cost <= problem.max_migration_cost + TOLERANCE

    def _make_reach(self) -> None:
        problem, nodes = self._problem, len(self._problem.capacity)
        settled = np.flatnonzero(problem.home != NOWHERE)
        sizes = np.bincount(problem.home[settled], minlength=nodes)
        most = int(min(MOST_MOVES, max(sizes.max(initial=0), 1)))
        given_least, given_most = _sums_of_extremes(problem, settled, sizes, most)
        everything = np.sort(problem.load)
        taken = min(most, len(everything))
        least = np.concatenate([[0.0], np.cumsum(everything[:taken])])
        most_taken = np.concatenate([[0.0], np.cumsum(everything[::-1][:taken])])
        if taken < len(everything):
            most_taken[-1] = np.inf
        self._lowest = (self._totals[:, None] - given_most)[:, :, None] + least
        self._highest = (self._totals[:, None] - given_least)[:, :, None] + most_taken
        self._highest = self._highest + self._free_load
        # A node cannot give more key groups than it has.
        self._possible = (np.arange(most + 1)[None, :] <= sizes[:, None])[:, :, None]
        self._given = np.arange(most + 1)[None, :]

    def _least_moves(self, low: Floats, high: Floats) -> float:
        reaches = (self._lowest <= high[:, None, None]) & (self._highest >= low[:, None, None])
        reaches &= self._possible
        # No price is negative, so of all b that go with an a only the smallest counts.
        taken = np.where(reaches.any(axis=2), reaches.argmax(axis=2), np.inf)
        if not np.isfinite(taken).any(axis=1).all():
            return math.inf
        best = 0.0
        for weight in LAMBDAS[:-1]:
            price = (0.5 + weight) * self._given + (0.5 - weight) * taken
            best = max(best, float(price.min(axis=1).sum()))
        given = np.where(np.isfinite(taken), self._given, np.inf)  # at 1/2, where b has no price
        best = max(best, float(given.min(axis=1).sum()))
        return math.ceil(best - 1e-6)

    def _least_cost(self, low: Floats, high: Floats) -> float:
        problem = self._problem
        given = 0.0
        for node in np.flatnonzero(self._totals > high):
            members = np.flatnonzero(problem.home == node)
            given += self._fractional(members, float(self._totals[node] - high[node]))
        wanted = np.maximum(low - self._totals, 0.0)
        lacking = float(wanted[problem.open].sum()) - self._free_load
        taken = self._fractional(np.flatnonzero(problem.home != NOWHERE), lacking)
        return max(given, taken)

    def _fractional(self, groups: Ints, wanted: float) -> float:
        """Least cost of key groups whose loads sum to what is wanted, the last one cut."""
        if wanted <= 0:
            return 0.0
        order = groups[np.argsort(-self._ratio[groups], kind="stable")]
        loads = np.cumsum(self._problem.load[order])
        costs = np.concatenate([[0.0], np.cumsum(self._problem.move_cost[order])])
        whole = int(np.searchsorted(loads, wanted))
        if whole >= len(order):
            return float(costs[-1]) if loads.size and loads[-1] >= wanted - TOLERANCE else math.inf
        before = loads[whole - 1] if whole else 0.0
        return float(costs[whole] + (wanted - before) / self._ratio[order[whole]])


def _sums_of_extremes(
    problem: AllocationProblem, settled: Ints, sizes: Ints, most: int
) -> tuple[Floats, Floats]:
    """For each node, sums of its 0, 1, ... `most` smallest and largest key groups."""
    nodes = len(sizes)
    order = settled[np.lexsort((problem.load[settled], problem.home[settled]))]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    running = np.concatenate([[0.0], np.cumsum(problem.load[order])])
    counts = np.minimum(np.arange(most + 1)[None, :], sizes[:, None])
    smallest = running[starts[:nodes, None] + counts] - running[starts[:nodes, None]]
    largest = running[starts[1:, None]] - running[starts[1:, None] - counts]
    # The last class means "this many or more", so it may reach as far as giving everything.
    largest[:, -1] = running[starts[1:]] - running[starts[:nodes]]
    return smallest, largest
