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

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from penstock.allocation.bound import load_distance_bound
from penstock.allocation.budget import SearchBudget
from penstock.allocation.collocated import partitions
from penstock.allocation.joining import Pairs, join_pairs
from penstock.allocation.problem import NOWHERE, AllocationProblem, Ints, rank, summed_by
from penstock.allocation.solver import Allocation, allocation_of, solve
from penstock.allocation.traffic import Traffic

SHARE_OF_TRIES = 0.8  # of all work; the rest is for balancing alone, should no try do
SHARE_OF_A_TRY = 0.25  # of what is left for tries


@dataclass(frozen=True)
class AlbicOptions:
    """The paper's maxLD, maxPL, stepPL and sF.

    maxPL and stepPL are for a node of capacity 1.

    Differs from Madsen et al. 2017, Algorithm 2: `pairs_per_round` may exceed the paper's one pair,
    and fewer pairs are joined (`fewer_pairs`) before maxPL is lowered.
    """

    max_load_distance: float = 10.0
    max_partition_load: float = 25.0
    partition_load_step: float = 5.0
    score_factor: float = 1.5
    pairs_per_round: int = 1
    fewer_pairs: bool = True


@dataclass(frozen=True)
class AlbicAnswer:
    """The allocation, the pairs newly put together, and the maxPL it was found with."""

    allocation: Allocation
    joined: Pairs
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
    homes = problem.home[traffic.source[pairs]]
    together = (homes == problem.home[traffic.target[pairs]]) & (homes != NOWHERE)
    apart = pairs[~together]
    apart = apart[np.lexsort((rng.random(len(apart)), -traffic.rate[apart]))]
    bound = load_distance_bound(problem)
    tries = budget.part(SHARE_OF_TRIES)
    for partition_load in _partition_loads(problem, traffic, pairs, options):
        parts = partitions(problem, traffic, pairs[together], partition_load, rng)
        most = options.pairs_per_round
        while most >= 0:
            constrained, joined = join_pairs(
                problem, traffic, apart, parts, most, options.max_load_distance
            )
            merged = solve(parts.merged(constrained), tries.part(SHARE_OF_A_TRY), rng)
            answer = allocation_of(problem, merged.placement[parts.number], bound)
            near = answer.distance.load_distance <= options.max_load_distance
            if near and _keeps(problem, answer.placement):
                return AlbicAnswer(answer, joined, partition_load)
            if not options.fewer_pairs or not joined:
                break
            most = len(joined) // 2
    return AlbicAnswer(solve(problem, budget, rng), (), 0.0)


def _keeps(problem: AllocationProblem, placement: Ints) -> bool:
    """Whether limits are kept, and drained what the budget pays for."""
    return rank(problem, placement)[:2] == (0.0, 0.0)


def _partition_loads(
    problem: AllocationProblem, traffic: Traffic, pairs: Ints, options: AlbicOptions
) -> Iterator[float]:
    """maxPL for the capacity of nodes, lowered step by step.

    It begins with what holds the heaviest pair, if a node can carry that within maxLD.
    """
    capacity = float(np.median(problem.capacity[problem.open]))
    room = (problem.mean + options.max_load_distance) * capacity
    loads = problem.load[traffic.source[pairs]] + problem.load[traffic.target[pairs]]
    heaviest = float(loads[loads <= room].max(initial=0.0))
    most = options.max_partition_load
    while most > 0:
        load = most * capacity
        yield max(load, heaviest) if most == options.max_partition_load else load
        most -= options.partition_load_step


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
