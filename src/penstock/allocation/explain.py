"""Why a placement is what it is, and what of the request it cannot meet."""

import math
from collections.abc import Sequence

import numpy as np

from penstock.allocation.problem import (
    NOWHERE,
    TOLERANCE,
    AllocationProblem,
    Ints,
    distance,
    summed_by,
)
from penstock.allocation.solver import Allocation

MOST_NAMED = 3


def reasons(
    problem: AllocationProblem, allocation: Allocation, nodes: Sequence[str]
) -> tuple[str, ...]:
    """Lines for a person: what changes, from what, to what, because of which numbers."""
    placement = allocation.placement
    before = distance(problem, problem.home).load_distance
    moved = int(np.count_nonzero((placement != problem.home) & (problem.home != NOWHERE)))
    after = allocation.distance.load_distance
    why = "nodes that leave are emptied" if moved else "the load stays where it is"
    if after < before - TOLERANCE:
        why = "the load becomes more even"
    lines = [
        f"{why}: {moved} migrations (load distance {before:.4g} -> {after:.4g} around a mean of "
        f"{problem.mean:.4g}, {_budget(problem, allocation)}; none within the budget is below "
        f"{allocation.bound:.4g})"
    ]
    placed = int(np.count_nonzero(problem.home == NOWHERE))
    if placed:
        lines.append(f"{placed} key groups without a node are placed, outside the budget")
    old, new = problem.node_loads(problem.home), problem.node_loads(placement)
    changed = np.argsort(-np.abs(new - old), kind="stable")[:MOST_NAMED]
    lines += [
        f"node {nodes[node]}: load {old[node]:.4g} -> {new[node]:.4g}"
        for node in changed
        if abs(new[node] - old[node]) > TOLERANCE
    ]
    return tuple(lines)


def infeasibility(
    problem: AllocationProblem, placement: Ints, nodes: Sequence[str], max_load: float
) -> str | None:
    """One sentence on what cannot be met, or None."""
    if problem.all_draining and len(problem.load):
        return "every node is draining, so there is no node to move key groups to."
    return (
        _too_little_capacity(problem, max_load)
        or _resources(problem, placement, nodes)
        or _undrained(problem, placement, nodes)
    )


def _too_little_capacity(problem: AllocationProblem, max_load: float) -> str | None:
    if problem.mean > max_load + TOLERANCE:
        return (
            f"capacity is too small: the nodes that stay would be loaded {problem.mean:.4g} each, "
            f"above {max_load:g}; {_missing(problem, max_load):.4g} more capacity is needed."
        )
    if len(problem.load):
        heaviest = float(problem.load.max() / problem.capacity[problem.open].max())
        if heaviest > max_load + TOLERANCE:
            return (
                f"capacity is too small: one key group alone loads the largest node "
                f"{heaviest:.4g}, above {max_load:g}."
            )
    return None


def _missing(problem: AllocationProblem, max_load: float) -> float:
    return problem.total / max_load - float(problem.capacity[problem.open].sum())


def _undrained(problem: AllocationProblem, placement: Ints, nodes: Sequence[str]) -> str | None:
    staying = np.flatnonzero(~problem.open[placement])
    if len(staying) == 0:
        return None
    names = [nodes[node] for node in np.unique(placement[staying])]
    shown = ", ".join(names[:MOST_NAMED]) + (", ..." if len(names) > MOST_NAMED else "")
    leaving = (problem.home != NOWHERE) & ~problem.open[problem.home]
    needed = float(problem.move_cost[leaving].sum())
    why = f"emptying them costs {needed:.6g}, the budget is {problem.max_migration_cost:.6g}"
    if problem.must_drain and problem.resources:
        why = "the nodes that stay have no room for them within the resource limits"
    elif problem.must_drain:
        why = "the budget was spent on other moves"
    return (
        f"{len(staying)} of {int(leaving.sum())} key groups are left on draining nodes ({shown}) "
        f"after this round: {why}."
    )


def _resources(problem: AllocationProblem, placement: Ints, nodes: Sequence[str]) -> str | None:
    for resource in problem.resources:
        used = summed_by(placement, resource.use, len(problem.capacity))
        over = used - resource.limit
        worst = int(over.argmax())
        if over[worst] > TOLERANCE * (1.0 + abs(resource.limit[worst])):
            return (
                f"{resource.name} is exceeded on node {nodes[worst]}: {used[worst]:.6g} of "
                f"{resource.limit[worst]:.6g}."
            )
    return None


def _budget(problem: AllocationProblem, allocation: Allocation) -> str:
    if math.isinf(problem.max_migration_cost):
        return "no budget"
    return f"cost {allocation.cost:.6g} of {problem.max_migration_cost:.6g}"
