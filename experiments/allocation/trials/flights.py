"""ALBIC against COLA on the flights jobs (Madsen et al. 2017, s. 5.4).

Both start from an allocation in which no two key groups that talk one to one share a node. ALBIC
adapts it in rounds of 10 migrations; COLA places everything anew each period. A migration costs 2.5
seconds of work in a period of five minutes, as the paper has it for job 1.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from experiments.allocation.workloads.clusters import alike
from experiments.allocation.workloads.flights import GROUPS, operators, periods
from penstock.allocation.albic import AlbicOptions, albic
from penstock.allocation.budget import SearchBudget
from penstock.allocation.cola import cola
from penstock.allocation.problem import AllocationProblem, Floats, Ints, distance
from penstock.allocation.traffic import Traffic

NODES = 20
MEAN_LOAD = 50.0
MAX_MIGRATIONS = 10
PERIOD_S = 300.0
MIGRATION_S = 2.5
ROUND_WORK = 3e6
OPTIONS = AlbicOptions(pairs_per_round=5)
Decide = Callable[[AllocationProblem, Traffic], Ints]


@dataclass(frozen=True)
class Course:
    """Measures of each period."""

    collocation: Floats  # percent
    load_distance: Floats
    load_index: Floats  # percent of the first period's load for each row, with migrations
    migrations: Floats


def apart(job: int) -> Ints:
    """Five key groups of each operator on a node, those of one number never together."""
    group = np.arange(operators(job) * GROUPS)
    return (group % GROUPS + group // GROUPS) % NODES


def course(job: int, count: int, decide: Decide) -> Course:
    """One policy over the periods; what is decided from one period holds in the next."""
    home = apart(job)
    scale = first = 0.0
    found: list[tuple[float, float, float, float]] = []
    moved = 0
    for period in periods(job, count):
        load = period.load(home)
        if scale == 0.0:
            # Rows differ from period to period, the load of a row should not.
            scale = MEAN_LOAD * NODES * period.rows / load.sum()
            first = load.sum() / period.rows
        problem = alike(load * scale / period.rows, home, NODES, MAX_MIGRATIONS)
        index = 100 * (load.sum() / period.rows / first + _overhead(moved))
        share = 100 * period.traffic.collocation(home)
        found.append((share, distance(problem, home).load_distance, index, moved))
        placed = decide(problem, period.traffic)
        moved = int(np.count_nonzero(placed != home))
        home = placed
    return Course(*(np.array(column, dtype=np.float64) for column in zip(*found, strict=True)))


def from_scratch(job: int, count: int, decide: Decide) -> Course:
    """A policy that starts from the same bad allocation each period, and what it then reaches."""
    found = []
    for period in periods(job, count):
        home = apart(job)
        first = period.load(home).sum()
        scale = MEAN_LOAD * NODES / first
        problem = alike(period.load(home) * scale, home, NODES, MAX_MIGRATIONS)
        placed = decide(problem, period.traffic)
        after = alike(period.load(placed) * scale, placed, NODES, MAX_MIGRATIONS)
        moved = int(np.count_nonzero(placed != home))
        index = 100 * (period.load(placed).sum() / first + _overhead(moved))
        share = 100 * period.traffic.collocation(placed)
        found.append((share, distance(after, placed).load_distance, index, moved))
    return Course(*(np.array(column, dtype=np.float64) for column in zip(*found, strict=True)))


def _overhead(moved: int) -> float:
    """What migrations cost, as a share of the load at the start."""
    return moved * MIGRATION_S / PERIOD_S / (MEAN_LOAD / 100 * NODES)


def by_albic(seed: int) -> Decide:
    """Algorithm 2 with the budget of the paper."""
    rng = np.random.default_rng(seed)
    return lambda problem, traffic: (
        albic(problem, traffic, OPTIONS, SearchBudget(ROUND_WORK), rng).allocation.placement
    )


def by_cola(seed: int) -> Decide:
    """Everything anew."""
    rng = np.random.default_rng(seed)
    return lambda problem, traffic: cola(problem, traffic, rng)
