"""Flux: the heaviest node hands its biggest suitable key group to the lightest, and so on.

Nodes are sorted by load, descending; the first gives its biggest key group that lowers the
variance of the pair to the last, the second to the last but one, and so on; passes repeat while the
budget lasts and something moves. Reference: Shah et al. 2003 as described in Madsen et al. 2017,
s. 2.2.
Differs from Madsen et al. 2017, s. 2.2: a draining node comes first and gives whatever the
variance.
"""

import numpy as np

from penstock.allocation.problem import NOWHERE, TOLERANCE, AllocationProblem, Floats, Ints
from penstock.allocation.settle import fits, settle


def flux(problem: AllocationProblem) -> Ints:
    """The placement after Flux has spent its budget."""
    placement = settle(problem)
    totals = problem.totals(placement)
    left = problem.max_migration_cost - problem.cost(placement)
    at_home = _by_home(problem)
    moved = not problem.all_draining
    while moved and left > TOLERANCE:
        moved = False
        for giver, taker in _pairs(problem, totals):
            group = _biggest_suitable(
                problem, placement, at_home[giver], totals, giver, taker, left
            )
            if group == NOWHERE:
                continue
            placement[group] = taker
            totals[giver] -= problem.load[group]
            totals[taker] += problem.load[group]
            left -= problem.move_cost[group]
            moved = True
    return placement


def _pairs(problem: AllocationProblem, totals: Floats) -> list[tuple[int, int]]:
    loads = totals / problem.capacity
    # Draining nodes that still hold something stand before all others.
    holds = ~problem.open & (totals > TOLERANCE)
    order = np.lexsort((-loads, ~holds))
    order = order[problem.open[order] | holds[order]]
    takers = [int(node) for node in order[::-1] if problem.open[node]]
    pairs = zip((int(node) for node in order), takers, strict=False)
    return [(giver, taker) for giver, taker in pairs if loads[giver] > loads[taker] or holds[giver]]


def _by_home(problem: AllocationProblem) -> list[Ints]:
    """The key groups that live on each node and may leave it."""
    free = np.flatnonzero((problem.pinned == NOWHERE) & (problem.home != NOWHERE))
    order = free[np.argsort(problem.home[free], kind="stable")]
    sizes = np.bincount(problem.home[order], minlength=len(problem.capacity))
    return np.split(order, np.cumsum(sizes)[:-1])


def _biggest_suitable(
    problem: AllocationProblem,
    placement: Ints,
    members: Ints,
    totals: Floats,
    giver: int,
    taker: int,
    left: float,
) -> int:
    """Of the giver's own key groups; one that came today does not go on."""
    if giver == taker:
        return NOWHERE
    affordable = problem.move_cost[members] <= left + TOLERANCE
    groups = members[(placement[members] == giver) & affordable]
    groups = groups[fits(problem, placement, groups, taker)]
    load = problem.load[groups]
    if problem.open[giver]:
        mean, capacity = problem.mean, problem.capacity
        before = (totals[giver] / capacity[giver] - mean) ** 2
        before += (totals[taker] / capacity[taker] - mean) ** 2
        after = ((totals[giver] - load) / capacity[giver] - mean) ** 2
        after += ((totals[taker] + load) / capacity[taker] - mean) ** 2
        groups, load = groups[after < before - TOLERANCE], load[after < before - TOLERANCE]
    return int(groups[load.argmax()]) if len(groups) else NOWHERE
