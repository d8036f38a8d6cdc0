"""ALBIC: balance load while key groups that talk much come together.

Madsen et al. 2017, Algorithm 2.

1. A pair scores when out(g_i, g_j) > avg(g_i) sF, with avg(g_i) the output of g_i over the number
   of key groups of its downstream operators.
2. Scoring pairs on one node are merged into sets; a set is cut into partitions (METIS) whose
   migration cost is at most the budget and whose load at most maxPL. A partition moves as one.
3. The scoring pair with most traffic that is apart is put on one node.
4. The program of s.4.3.1 is solved with these constraints; when its load distance is above maxLD,
   everything is repeated with maxPL lowered by stepPL, and at 0 without any collocation.
"""

import math
from dataclasses import dataclass, replace

import networkx as nx
import numpy as np

from penstock.allocation.bound import load_distance_bound
from penstock.allocation.budget import SearchBudget
from penstock.allocation.partition import split
from penstock.allocation.problem import (
    NOWHERE,
    TOLERANCE,
    AllocationProblem,
    Ints,
    Resource,
    summed_by,
)
from penstock.allocation.solver import Allocation, allocation_of, solve
from penstock.allocation.traffic import Traffic


@dataclass(frozen=True)
class AlbicOptions:
    """The paper's maxLD, maxPL, stepPL and sF.

    Differs from Madsen et al. 2017, Algorithm 2: `pairs_per_round` may exceed the paper's one pair.
    """

    max_load_distance: float = 10.0
    max_partition_load: float = 25.0
    partition_load_step: float = 5.0
    score_factor: float = 1.5
    pairs_per_round: int = 1


@dataclass(frozen=True)
class AlbicAnswer:
    """The allocation, the pairs newly put together, and the maxPL it was found with."""

    allocation: Allocation
    joined: tuple[tuple[int, int], ...]
    max_partition_load: float


def albic(
    problem: AllocationProblem,
    traffic: Traffic,
    options: AlbicOptions,
    budget: SearchBudget,
    rng: np.random.Generator,
) -> AlbicAnswer:
    """One round of ALBIC."""
    pairs = scoring_pairs(traffic, options.score_factor)
    together = problem.home[traffic.source[pairs]] == problem.home[traffic.target[pairs]]
    together &= problem.home[traffic.source[pairs]] != NOWHERE
    bound = load_distance_bound(problem)
    partition_load = options.max_partition_load
    while True:
        units = np.arange(len(problem.load))
        joined: tuple[tuple[int, int], ...] = ()
        constrained = problem
        if partition_load > 0:
            units = _partitions(problem, traffic, pairs[together], partition_load, rng)
            constrained, joined = _join(problem, traffic, pairs[~together], units, options, rng)
        share = 0.5 if partition_load > 0 else 1.0
        merged = solve(_merged(constrained, units), budget.part(share), rng)
        answer = allocation_of(problem, merged.placement[units], bound)
        if answer.distance.load_distance <= options.max_load_distance or partition_load <= 0:
            return AlbicAnswer(answer, joined, max(partition_load, 0.0))
        partition_load -= options.partition_load_step


def scoring_pairs(traffic: Traffic, score_factor: float) -> Ints:
    """Rows of the traffic that exceed the score factor times their sender's average (step 1)."""
    if len(traffic.rate) == 0:
        return np.empty(0, dtype=np.int64)
    groups = len(traffic.operator)
    operators = int(traffic.operator.max()) + 1
    sizes = np.bincount(traffic.operator, minlength=operators)
    edges = np.unique(
        traffic.operator[traffic.source] * operators + traffic.operator[traffic.target]
    )
    receivers = summed_by(edges // operators, sizes[edges % operators].astype(float), operators)
    output = summed_by(traffic.source, traffic.rate, groups)
    average = output / np.maximum(receivers[traffic.operator], 1)
    return np.flatnonzero(traffic.rate > average[traffic.source] * score_factor)


def _partitions(
    problem: AllocationProblem,
    traffic: Traffic,
    collocated: Ints,
    partition_load: float,
    rng: np.random.Generator,
) -> Ints:
    """The number of its partition for each key group; a key group alone is its own (step 2)."""
    graph: nx.Graph[int] = nx.Graph()
    graph.add_edges_from(
        zip(traffic.source[collocated].tolist(), traffic.target[collocated].tolist(), strict=True)
    )
    units = np.arange(len(problem.load))
    for members in nx.connected_components(graph):
        waiting = [np.array(sorted(members))]
        while waiting:
            part = waiting.pop()
            cost_share = float(problem.move_cost[part].sum()) / max(
                problem.max_migration_cost, TOLERANCE
            )
            load_share = float(problem.load[part].sum()) / partition_load
            # The paper's ceilings, but never so many that a part would be empty.
            wanted = min(len(part), math.ceil(max(cost_share, load_share) - TOLERANCE))
            if wanted <= 1:
                units[part] = part[0]
                continue
            weight = problem.move_cost if cost_share > load_share else problem.load
            waiting += split(part, weight[part], traffic, wanted, int(rng.integers(2**31)))
    return units


def _join(
    problem: AllocationProblem,
    traffic: Traffic,
    apart: Ints,
    units: Ints,
    options: AlbicOptions,
    rng: np.random.Generator,
) -> tuple[AllocationProblem, tuple[tuple[int, int], ...]]:
    """Pin the pairs with most traffic that are apart and affordable to one node (step 3)."""
    pinned = problem.pinned.copy()
    sizes = np.bincount(units, minlength=len(units))
    loads = problem.node_loads(problem.home)
    left = problem.max_migration_cost
    room = (problem.mean + options.max_load_distance) * problem.capacity[problem.open].max()
    order = apart[np.lexsort((rng.random(len(apart)), -traffic.rate[apart]))]
    joined: list[tuple[int, int]] = []
    for row in order:
        if len(joined) == options.pairs_per_round:
            break
        pair = int(traffic.source[row]), int(traffic.target[row])
        members = np.flatnonzero((units == units[pair[0]]) | (units == units[pair[1]]))
        first, second = (bool(sizes[units[group]] > 1) for group in pair)
        homes = problem.home[list(pair)]
        if (homes == NOWHERE).any() or (pinned[members] != NOWHERE).any():
            continue
        if first == second:
            node = int(homes[loads[homes].argmin()])  # cases 1 and 3
        else:
            node = int(homes[0] if first else homes[1])  # case 2
        # Differs from Madsen et al. 2017, Algorithm 2: a pair too heavy for any node within maxLD
        # is passed over; tried first again in every round, it would keep all others from being
        # joined.
        if problem.load[members].sum() > room:
            continue
        cost = float(problem.move_cost[members[problem.home[members] != node]].sum())
        if cost > left + TOLERANCE or not problem.open[node]:
            continue
        pinned[members], left = node, left - cost
        joined.append(pair)
    return replace(problem, pinned=pinned), tuple(joined)


def _merged(problem: AllocationProblem, units: Ints) -> AllocationProblem:
    """The problem with partitions as key groups, numbered by their first member.

    Members other than the first stay as key groups without load or cost, pinned where they are.
    """
    groups = len(units)
    alone = units == np.arange(groups)
    summed = [summed_by(units, column, groups) for column in (problem.load, problem.move_cost)]
    return replace(
        problem,
        load=summed[0],
        migration_cost=summed[1],
        pinned=np.where(alone, problem.pinned, problem.home),
        resources=tuple(
            Resource(r.name, summed_by(units, r.use, groups), r.limit) for r in problem.resources
        ),
    )
