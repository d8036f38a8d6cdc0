"""Assignment by reservations of processor and memory, with the objective of the user's choice.

Kotto-Kombi 2018, ch. 4 s. 1.3.3. Every key group reserves amounts of the problem's resources, and
no node may be given more than it has. Among the placements that keep to this the best is

    equality   least variance of the nodes' processor usage (1), then least traffic between nodes
    traffic    least traffic between nodes (2), then least variance of usage
    resource   least traffic between nodes, then usage packed on as few nodes as possible

Neighbours in the graph of traffic are placed one after another, each on the best node that has room
for it (Peng et al. 2015); single moves and exchanges then improve that as long as any does.
Differs from Peng et al. 2015: the present placement is improved too, within the budget of
migrations, and the better of the two is the answer; so a placement that is good stays.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeVar

import networkx as nx
import numpy as np

from penstock.allocation.budget import SearchBudget
from penstock.allocation.problem import (
    NOWHERE,
    TOLERANCE,
    AllocationProblem,
    Bools,
    Floats,
    Ints,
    Resource,
    summed_by,
)
from penstock.allocation.settle import settle
from penstock.allocation.traffic import Traffic

Objective = Literal["equality", "traffic", "resource"]
OBJECTIVES: tuple[Objective, ...] = ("equality", "traffic", "resource")
CPU = "cpu"
MOST_EXCHANGED = 400  # key groups up to which exchanges of two are looked at as well
ORDERS = 8  # random orders in which key groups are placed anew, besides that of their traffic
SMALL = 1e-9  # differences below this share of all traffic, or of a usage, are none

Rank = tuple[float, float, float]
Level = TypeVar("Level", float, Floats)


def with_cpu(problem: AllocationProblem, max_load: float) -> AllocationProblem:
    """The problem with a reservation of processor: its load, where the user declared none."""
    if any(resource.name == CPU for resource in problem.resources):
        return problem
    cpu = Resource(CPU, problem.load, problem.capacity * max_load)
    return replace(problem, resources=(cpu, *problem.resources))


@dataclass(frozen=True)
class Assignment:
    """What is assigned, and how placements are compared. The problem must reserve `CPU`."""

    problem: AllocationProblem
    traffic: Traffic
    objective: Objective

    @cached_property
    def cpu(self) -> Resource:
        """The reservation that usage is counted in."""
        return next(one for one in self.problem.resources if one.name == CPU)

    @cached_property
    def whole(self) -> Floats:
        """What each node has of processors, above 0."""
        return np.maximum(self.cpu.limit, TOLERANCE)

    @cached_property
    def weight(self) -> Floats:
        """Traffic between each two key groups, as a share of all."""
        found = np.zeros((len(self.problem.load), len(self.problem.load)))
        np.add.at(found, (self.traffic.source, self.traffic.target), self.traffic.rate)
        found = found + found.T
        np.fill_diagonal(found, 0.0)
        return found / max(float(self.traffic.rate.sum()), TOLERANCE)

    def usage(self, placement: Ints) -> Floats:
        """The share of its processors that each node has reserved."""
        placed = placement != NOWHERE
        used = summed_by(placement[placed], self.cpu.use[placed], len(self.problem.capacity))
        return used / self.whole

    def rank(self, placement: Ints) -> Rank:
        """What is compared, smallest best: what is exceeded, then the objective's two levels."""
        variance = float(self.usage(placement)[self.problem.open].var())
        crossing = placement[:, None] != placement[None, :]
        traffic = float(self.weight[crossing].sum()) / 2
        return (self.problem.overuse(placement), *self.levels(traffic, variance))

    def levels(self, traffic: Level, variance: Level) -> tuple[Level, Level]:
        """The two levels of the objective, the first before the second."""
        if self.objective == "equality":
            return variance, traffic
        return traffic, variance if self.objective == "traffic" else -variance


def resource_aware(
    assignment: Assignment, budget: SearchBudget, rng: np.random.Generator
) -> Ints:  # fmt: skip
    """A node for every key group, within the budget of migrations."""
    problem = assignment.problem
    if len(problem.load) == 0:
        return problem.home.copy()
    best = _improved(assignment, settle(problem), budget)
    for order in _orders(assignment, rng):
        if budget.over:
            break
        anew = _placed(assignment, order)
        budget.spend(len(order) * len(problem.capacity))
        if problem.cost(anew) <= problem.max_migration_cost + TOLERANCE:
            found = _improved(assignment, anew, budget)
            best = min(best, found, key=lambda one: _rounded(assignment.rank(one)))
    return best


def _rounded(rank: Rank) -> Rank:
    overuse, first, second = (round(value, 9) for value in rank)
    return overuse, first, second


def _orders(assignment: Assignment, rng: np.random.Generator) -> Iterator[Ints]:
    """Breadth first from the key group with most traffic, heavy neighbours first; then any."""
    total = assignment.weight.sum(axis=1)
    graph = nx.from_numpy_array(assignment.weight)
    order: dict[int, None] = {}
    for start in np.argsort(-total, kind="stable").tolist():
        if start not in order:
            reached = nx.bfs_tree(
                graph, start, sort_neighbors=lambda found: sorted(found, key=lambda n: -total[n])
            )
            order |= dict.fromkeys(reached)
    yield np.array(list(order), dtype=np.int64)
    for _ in range(ORDERS):
        yield rng.permutation(len(total))


def _placed(assignment: Assignment, order: Ints) -> Ints:
    """Each key group on the node that is best when those before it are where they are."""
    problem, cpu, nodes = assignment.problem, assignment.cpu, len(assignment.problem.capacity)
    placement = problem.pinned.copy()
    there = np.flatnonzero(placement != NOWHERE)
    used = [summed_by(placement[there], one.use[there], nodes) for one in problem.resources]
    for group in order[placement[order] == NOWHERE]:
        over = np.where(problem.open, 0.0, np.inf)
        for resource, so_far in zip(problem.resources, used, strict=True):
            over += _excess(so_far + resource.use[group], resource.limit)
            over -= _excess(so_far, resource.limit)
        there = np.flatnonzero(placement != NOWHERE)
        kept = summed_by(placement[there], assignment.weight[group, there], nodes)
        usage = assignment.usage(placement) + cpu.use[group] / assignment.whole
        first, second = assignment.levels(-kept, usage)
        placement[group] = np.lexsort((second, first, over))[0]
        for resource, so_far in zip(problem.resources, used, strict=True):
            so_far[placement[group]] += resource.use[group]
    return placement


def _improved(assignment: Assignment, start: Ints, budget: SearchBudget) -> Ints:
    """From `start` by the best move or exchange, again and again, until none is better."""
    problem, placement = assignment.problem, start.copy()
    reached = assignment.rank(placement)
    free = np.flatnonzero(problem.pinned == NOWHERE)
    while not budget.over:
        step = _Step(assignment, placement)
        budget.spend(len(free) * (len(problem.capacity) + min(len(free), MOST_EXCHANGED)))
        candidates = [step.best_move(free)]
        if len(free) <= MOST_EXCHANGED:
            candidates.append(step.best_exchange(free))
        better = [(assignment.rank(one), one) for one in candidates if one is not None]
        if not better:
            break
        rank, found = min(better, key=lambda pair: pair[0])
        if not _is_less(rank, reached):
            break
        reached, placement = rank, found
    return placement


def _is_less(one: Rank, other: Rank) -> bool:
    for left, right in zip(one, other, strict=True):
        if abs(left - right) > SMALL:
            return left < right
    return False


class _Step:
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
            gained = _excess(used + use, resource.limit) - _excess(used, resource.limit)
            left = _excess(used[at][:, None] - use, resource.limit[at][:, None])
            left -= _excess(used[at], resource.limit[at])[:, None]
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
            here = _excess(used[at][:, None] + gained, limit[:, None])
            here -= _excess(used[at], limit)[:, None]
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


def _excess(used: Floats, limit: Floats) -> Floats:
    """By how much a limit is exceeded, as a share of it."""
    over: Floats = np.maximum(used - limit, 0.0) / np.maximum(limit, TOLERANCE)
    return over
