"""Key groups to nodes: from the present and from heuristics to the best the budget finds.

The answer is never worse than the present or than Flux (both are among the starts, and the best
by `rank` is returned), and it carries a proven bound.
"""

from dataclasses import dataclass

import numpy as np

from penstock.allocation.bound import load_distance_bound
from penstock.allocation.budget import SearchBudget
from penstock.allocation.drain import drain_further, force_one
from penstock.allocation.flux import flux
from penstock.allocation.local_search import CLOSE_ENOUGH, LocalSearch
from penstock.allocation.milp import solve_exact
from penstock.allocation.problem import (
    NOWHERE,
    AllocationProblem,
    Distance,
    Ints,
    distance,
    rank,
)
from penstock.allocation.settle import settle

FEW_MOVES = 240  # binary variables up to which the whole program is given to HiGHS
EXACT_NODES = 1_000  # branch-and-bound nodes: a limit that is the same on every machine
EXACT_WORK = 6.0  # work of one such node, for each squared binary variable; measured


@dataclass(frozen=True)
class Allocation:
    """A placement, what it reaches, what it costs, and how much better any other could be."""

    placement: Ints
    distance: Distance
    cost: float
    bound: float  # no placement within the budget has a smaller load distance

    @property
    def gap(self) -> float:
        """Points of load distance that might still be had; never negative."""
        return max(0.0, self.distance.load_distance - self.bound)


def solve(problem: AllocationProblem, budget: SearchBudget, rng: np.random.Generator) -> Allocation:
    """The best placement found within the budget of search and of migrations."""
    proven = load_distance_bound(problem)
    bound = load_distance_bound(problem, drained=True) if problem.must_empty else proven
    present, by_flux = settle(problem), flux(problem)
    if problem.all_draining or len(problem.load) == 0:
        return allocation_of(problem, present, proven)
    # Draining may break limits that are kept now: to stay is then better.
    stayed = settle(problem, drained=False) if problem.overuse(present) > 0 else present
    starts = (by_flux, present, stayed)
    # A small program is left to HiGHS, which also proves what it finds.
    share = 0.3 if _is_small(problem) else 0.6
    found = _searched(problem, present, bound, budget.part(share), rng)
    best = min(found, *starts, key=lambda placement: rank(problem, placement))
    best = _searched(problem, best, bound, budget.part(share), rng)
    best, bound = _exact_if_small(problem, best, bound, budget)
    search = LocalSearch(problem, best, budget, rng)
    search.narrow_other_side(distance(problem, best).load_distance)
    finished = drain_further(problem, trim(problem, search.best))
    best = min(finished, best, *starts, key=lambda placement: rank(problem, placement))
    proven = proven if problem.must_empty else max(proven, bound)
    return allocation_of(problem, force_one(problem, best), proven)


def allocation_of(problem: AllocationProblem, placement: Ints, bound: float) -> Allocation:
    """A placement with its measures."""
    found = distance(problem, placement)
    return Allocation(placement, found, problem.cost(placement), min(bound, found.load_distance))


def trim(problem: AllocationProblem, placement: Ints) -> Ints:
    """The placement without the moves it does not need, dearest first."""
    trimmed = placement.copy()
    reached = rank(problem, trimmed)
    moved = np.flatnonzero(
        (placement != problem.home) & (problem.home != NOWHERE) & (problem.pinned == NOWHERE)
        & problem.open[problem.home]
    )  # fmt: skip
    for group in moved[np.argsort(-problem.move_cost[moved], kind="stable")]:
        trimmed[group] = problem.home[group]
        again = rank(problem, trimmed)
        if again <= reached:
            reached = again
        else:
            trimmed[group] = placement[group]
    return trimmed


def _searched(
    problem: AllocationProblem,
    start: Ints,
    bound: float,
    budget: SearchBudget,
    rng: np.random.Generator,
) -> Ints:
    search = LocalSearch(problem, start, budget, rng)
    search.narrow_distance(bound)
    return search.best


def _binaries(problem: AllocationProblem) -> int:
    return len(problem.load) * int(problem.open.sum())


def _is_small(problem: AllocationProblem) -> bool:
    return _binaries(problem) <= FEW_MOVES


def _exact_if_small(
    problem: AllocationProblem, best: Ints, bound: float, budget: SearchBudget
) -> tuple[Ints, float]:
    overuse, left, reached, *_ = rank(problem, best)
    feasible = overuse == 0 and left == 0
    if not _is_small(problem) or (feasible and reached <= bound + CLOSE_ENOUGH):
        return best, bound
    work_per_node = EXACT_WORK * _binaries(problem) ** 2
    nodes = int(min(EXACT_NODES, 0.8 * budget.left / work_per_node))
    if nodes == 0:
        return best, bound
    answer = solve_exact(
        problem,
        max_nodes=nodes,
        time_limit_s=budget.time_left_s,
        start=best if feasible else None,
        bound=bound if feasible else 0.0,
    )
    budget.spend(nodes * work_per_node)
    if answer.placement is not None:
        best = min(best, answer.placement, key=lambda placement: rank(problem, placement))
    return best, max(bound, answer.bound)
