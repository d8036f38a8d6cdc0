"""Where key groups go that cannot stay: greedily, the heaviest first, to the lightest node.

Those without a home, those pinned elsewhere, and those of draining nodes when the budget pays for
all of them. Everything else stays. This is the start of every search.
"""

import numpy as np

from penstock.allocation.problem import (
    NOWHERE,
    TOLERANCE,
    AllocationProblem,
    Bools,
    Floats,
    Ints,
    summed_by,
)


def settle(problem: AllocationProblem, drained: bool = True) -> Ints:
    """The present, with a node for every key group that cannot stay.

    Those on draining nodes may stay where `drained` is false.
    """
    placement = np.where(problem.pinned != NOWHERE, problem.pinned, problem.home)
    homeless = placement == NOWHERE
    if drained and problem.must_drain:
        settled = np.flatnonzero(~homeless & (problem.pinned == NOWHERE))
        homeless[settled[~problem.open[placement[settled]]]] = True
    waiting = np.flatnonzero(homeless)
    placement[waiting] = NOWHERE
    totals = problem.totals(placement)
    usage = [_used(problem, placement, resource.use) for resource in problem.resources]
    receivers = np.flatnonzero(problem.open)
    for group in waiting[np.argsort(-problem.load[waiting], kind="stable")]:
        after = (totals[receivers] + problem.load[group]) / problem.capacity[receivers]
        over = np.zeros(len(receivers))
        for used, resource in zip(usage, problem.resources, strict=True):
            exceeds = used[receivers] + resource.use[group] - resource.limit[receivers]
            over += np.where(exceeds > TOLERANCE, exceeds, 0.0)
        node = receivers[np.lexsort((after, over))[0]]
        placement[group] = node
        totals[node] += problem.load[group]
        for used, resource in zip(usage, problem.resources, strict=True):
            used[node] += resource.use[group]
    return placement


def fits(problem: AllocationProblem, placement: Ints, groups: Ints, node: int) -> Bools:
    """Which of some key groups a node has room for in every further resource."""
    room = np.ones(len(groups), dtype=bool)
    for resource in problem.resources:
        used = float(resource.use[placement == node].sum())
        room &= used + resource.use[groups] <= resource.limit[node] + TOLERANCE
    return room


def _used(problem: AllocationProblem, placement: Ints, use: Floats) -> Floats:
    placed = placement != NOWHERE
    return summed_by(placement[placed], use[placed], len(problem.capacity))
