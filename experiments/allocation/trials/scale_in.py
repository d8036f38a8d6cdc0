"""Rounds of scale-in: integrated with balancing, or before it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.allocation.workloads.clusters import fluctuating
from penstock.allocation.budget import SearchBudget
from penstock.allocation.problem import AllocationProblem, Ints, distance
from penstock.allocation.settle import settle
from penstock.allocation.solver import solve

GOOD_DISTANCE = 5.0  # points; the paper shows a curve and names no threshold
OVERLOADED = 100.0
MOST_ROUNDS = 40


@dataclass(frozen=True)
class Course:
    """Load distance after each round, and after how many of them something is reached."""

    distances: list[float]
    good_after: int  # a good distance
    relieved_after: int  # no node far above the mean
    drained_after: int


def overloaded_cluster(nodes: int, leaving: int, overloaded: int, seed: int) -> AllocationProblem:
    """The first nodes are to leave, the last ones have more than they can do."""
    problem = fluctuating(nodes, 20, varies=0, max_migrations=20, seed=seed)
    hot = problem.home >= nodes - overloaded
    load = problem.load.copy()
    load[hot] *= OVERLOADED / problem.node_loads(problem.home)[problem.home[hot]]
    draining = np.arange(nodes) < leaving
    return replace(problem, load=load, draining=draining)


def course(problem: AllocationProblem, how: str, seed: int) -> Course:
    """Rounds until all is drained and balanced; `how` is "integrated" or "scale-in first"."""
    rng = np.random.default_rng(seed)
    found = distance(problem, problem.home)
    distances, uppers = [found.load_distance], [found.upper]
    drained_after = 0
    for number in range(1, MOST_ROUNDS + 1):
        held = int(np.count_nonzero(problem.draining[problem.home]))
        if how == "integrated" or held == 0:
            home = solve(problem, SearchBudget(1e6), rng).placement
        else:
            home = _scale_in_only(problem)
        problem = replace(problem, home=home)
        found = distance(problem, home)
        distances.append(found.load_distance)
        uppers.append(found.upper)
        if not drained_after and not problem.draining[home].any():
            drained_after = number
        if drained_after and distances[-1] < GOOD_DISTANCE:
            break
    return Course(distances, _since(distances), _since(uppers), drained_after or MOST_ROUNDS + 1)


def _since(values: Sequence[float]) -> int:
    """The round from which on all values are good."""
    late = [number for number, value in enumerate(values) if value >= GOOD_DISTANCE]
    return late[-1] + 1 if late else 0


def _scale_in_only(problem: AllocationProblem) -> Ints:
    """As many key groups as the budget allows from draining nodes, evenly to the others."""
    waiting = np.flatnonzero(problem.draining[problem.home])[: int(problem.max_migration_cost)]
    pretended = problem.home.copy()
    pretended[waiting] = -1
    # The rest of the draining nodes is not this round's business.
    return settle(replace(problem, home=pretended, max_migration_cost=0.0))
