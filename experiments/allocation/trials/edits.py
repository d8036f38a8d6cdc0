"""Policies over the periods of job 1 (top-k of edits)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from experiments.allocation.workloads.clusters import alike
from experiments.allocation.workloads.edits import GROUPS, NODES, OPERATORS, periods
from penstock.allocation.budget import SearchBudget
from penstock.allocation.potc import potc
from penstock.allocation.problem import AllocationProblem, Floats, Ints, distance
from penstock.allocation.solver import solve

FULL, QUICK = (33, 4e6), (8, 5e5)  # periods, and the solver's work in each
WARM_UP = 3  # periods that are not counted
Decide = Callable[[AllocationProblem], Ints]


@dataclass(frozen=True)
class Course:
    """Load distance and number of migrations in each period."""

    distances: Floats
    migrations: Floats


def course(count: int, seed: int, max_migrations: float, decide: Decide) -> Course:
    """A policy over all periods, each starting from where the last one left the key groups."""
    home = np.arange(OPERATORS * GROUPS) % NODES
    distances, migrations = [], []
    for period in periods(count, seed):
        problem = alike(period.load, home, NODES, max_migrations)
        home = decide(problem)
        distances.append(distance(problem, home).load_distance)
        migrations.append(problem.cost(home))
    return Course(np.array(distances[WARM_UP:]), np.array(migrations[WARM_UP:]))


def by_solver(seed: int, work: float) -> Decide:
    """Our solver, with so much work a period."""
    rng = np.random.default_rng(seed)
    return lambda problem: solve(problem, SearchBudget(work), rng).placement


def potc_distances(count: int, seed: int) -> Floats:
    """PoTC keeps its two choices; the split follows the load, merging does not."""
    found = []
    for period in periods(count, seed):
        problem = alike(period.load, np.zeros(len(period.load), dtype=np.int64), NODES)
        choices = potc(problem, np.random.default_rng(seed))
        loads = choices.node_loads(period.load, problem.capacity, period.merge_load)
        found.append(float(np.abs(loads - loads.mean()).max()))
    return np.array(found[WARM_UP:])
