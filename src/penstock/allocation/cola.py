"""COLA: from scratch, cut the graph of key groups until its pieces pack evenly.

All key groups start as one piece. The heaviest piece is cut in two by balanced graph partitioning
until the pieces, heaviest first to the lightest node, reach the wanted load distance or cannot be
cut. The present placement and migrations play no part. Reference: Khandekar et al. 2009 as
described in Madsen et al. 2017, s. 2.1.
"""

import heapq

import numpy as np

from penstock.allocation.partition import split
from penstock.allocation.problem import AllocationProblem, Ints, distance
from penstock.allocation.traffic import Traffic


def cola(
    problem: AllocationProblem,
    traffic: Traffic,
    rng: np.random.Generator,
    max_load_distance: float = 10.0,
) -> Ints:
    """A new placement of everything on the nodes that stay."""
    groups = len(problem.load)
    if groups == 0:
        return problem.home.copy()
    whole: list[Ints] = []  # pieces of one key group
    heap = [(-float(problem.load.sum()), 0, np.arange(groups))]
    serial = 1  # orders pieces of equal load
    while True:
        pieces = whole + [piece for _, _, piece in heap]
        enough = len(pieces) >= int(problem.open.sum())
        placement = _packed(problem, pieces) if enough or not heap else problem.home
        if not heap or (enough and _near(problem, placement, max_load_distance)):
            return placement
        _, _, members = heapq.heappop(heap)
        if len(members) == 1:
            whole.append(members)
            continue
        for part in split(members, problem.load[members], traffic, 2, int(rng.integers(2**31))):
            heapq.heappush(heap, (-float(problem.load[part].sum()), serial, part))
            serial += 1


def _near(problem: AllocationProblem, placement: Ints, max_load_distance: float) -> bool:
    return distance(problem, placement).load_distance <= max_load_distance


def _packed(problem: AllocationProblem, pieces: list[Ints]) -> Ints:
    placement = np.empty(len(problem.load), dtype=np.int64)
    totals = problem.fixed.copy()
    loads = [float(problem.load[piece].sum()) for piece in pieces]
    for index in np.argsort(-np.array(loads), kind="stable"):
        after = np.where(problem.open, (totals + loads[index]) / problem.capacity, np.inf)
        node = int(after.argmin())
        placement[pieces[index]] = node
        totals[node] += loads[index]
    return placement
