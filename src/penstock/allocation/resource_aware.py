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

import networkx as nx
import numpy as np

from penstock.allocation.assignment import Assignment, Rank
from penstock.allocation.assignment_steps import Steps, excess
from penstock.allocation.budget import SearchBudget
from penstock.allocation.problem import NOWHERE, TOLERANCE, Ints, summed_by
from penstock.allocation.settle import settle

MOST_EXCHANGED = 400  # key groups up to which exchanges of two are looked at as well
ORDERS = 8  # random orders in which key groups are placed anew, besides that of their traffic
SMALL = 1e-9  # differences below this share of all traffic, or of a usage, are none


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
            over += excess(so_far + resource.use[group], resource.limit)
            over -= excess(so_far, resource.limit)
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
        step = Steps(assignment, placement)
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
