"""What is left of the budget takes key groups off draining nodes.

Reference: Madsen et al. 2017, s. 4.3.1, second term of the objective (load on nodes marked for
removal).
"""

import numpy as np

from penstock.allocation.problem import TOLERANCE, AllocationProblem, Ints, rank
from penstock.allocation.settle import fits


def drain_further(problem: AllocationProblem, placement: Ints) -> Ints:
    """The placement with more key groups moved off draining nodes where d does not grow."""
    if problem.all_draining:
        return placement
    drained = placement.copy()
    staying = np.flatnonzero(~problem.open[drained])
    left = problem.max_migration_cost - problem.cost(drained)
    reached = rank(problem, drained)
    for group in staying[np.argsort(-problem.load[staying], kind="stable")]:
        if problem.move_cost[group] > left + TOLERANCE:
            continue
        target = _lightest(problem, drained, int(group))
        if target is None:
            continue
        old, drained[group] = drained[group], target
        again = rank(problem, drained)
        if again < reached:
            reached, left = again, left - problem.move_cost[group]
        else:
            drained[group] = old
    return drained


def force_one(problem: AllocationProblem, placement: Ints) -> Ints:
    """The placement with one key group off the draining nodes, if not one leaves them so far.

    The distance may grow: otherwise a node could wait for its removal for ever.
    """
    staying = np.flatnonzero(~problem.open[placement])
    came = np.count_nonzero(~problem.open[problem.home])
    left = problem.max_migration_cost - problem.cost(placement)
    affordable = staying[problem.move_cost[staying] <= left + TOLERANCE]
    if problem.all_draining or len(staying) < came or len(affordable) == 0:
        return placement
    forced = placement.copy()
    for group in affordable[np.argsort(problem.load[affordable], kind="stable")]:
        target = _lightest(problem, placement, int(group))
        if target is not None:
            forced[group] = target
            return forced
    return placement


def _lightest(problem: AllocationProblem, placement: Ints, group: int) -> int | None:
    after = (problem.totals(placement) + problem.load[group]) / problem.capacity
    for node in np.argsort(np.where(problem.open, after, np.inf), kind="stable"):
        if not problem.open[node]:
            return None
        if fits(problem, placement, np.array([group]), int(node))[0]:
            return int(node)
    return None
