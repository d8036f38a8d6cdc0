"""Pairs that talk and live apart are put on one node (Madsen et al. 2017, Algorithm 2, step 3)."""

from dataclasses import replace

import numpy as np

from penstock.allocation.collocated import Partitions
from penstock.allocation.problem import NOWHERE, TOLERANCE, AllocationProblem, Floats, Ints
from penstock.allocation.traffic import Traffic

Pairs = tuple[tuple[int, int], ...]


def join_pairs(
    problem: AllocationProblem,
    traffic: Traffic,
    apart: Ints,
    parts: Partitions,
    most: int,
    max_distance: float,
) -> tuple[AllocationProblem, Pairs]:
    """Pin at most so many pairs, in the order given, each to one node that can carry both.

    Differs from Madsen et al. 2017, Algorithm 2: a pair too heavy for its node within maxLD is
    passed over; tried first again in every round, it would keep all others from being joined. What
    draining needs of the budget is not spent on pairs.
    """
    pinned = problem.pinned.copy()
    loads = problem.node_loads(problem.home)
    going = (problem.home != NOWHERE) & ~problem.open[problem.home]
    left = problem.max_migration_cost
    left_beside_draining = left - float(problem.move_cost[going].sum())
    joined: list[tuple[int, int]] = []
    for row in apart:
        if len(joined) == most:
            break
        pair = int(traffic.source[row]), int(traffic.target[row])
        members = np.flatnonzero(np.isin(parts.number, parts.number[list(pair)]))
        node = _node_for(problem, parts, pair, loads)
        if node == NOWHERE or (pinned[members] != NOWHERE).any():
            continue
        room = (problem.mean + max_distance) * problem.capacity[node]
        moving = members[problem.home[members] != node]
        cost = float(problem.move_cost[moving].sum())
        beside = float(problem.move_cost[moving[~going[moving]]].sum())
        if problem.load[members].sum() > room + TOLERANCE or cost > left + TOLERANCE:
            continue
        if beside > max(left_beside_draining, 0.0) + TOLERANCE:
            continue
        pinned[members] = node
        left, left_beside_draining = left - cost, left_beside_draining - beside
        joined.append(pair)
    return replace(problem, pinned=pinned), tuple(joined)


def _node_for(
    problem: AllocationProblem, parts: Partitions, pair: tuple[int, int], loads: Floats
) -> int:
    """The home of one of the two: that of the one in a larger partition, or the lighter node.

    A node that drains is none; NOWHERE says that there is no other.
    """
    homes = problem.home[list(pair)]
    if (homes == NOWHERE).any():
        return NOWHERE
    staying = [int(home) for home in homes if problem.open[home]]
    in_set = parts.sizes[parts.number[list(pair)]] > 1
    if len(staying) < 2 or in_set[0] == in_set[1]:  # cases 1 and 3
        return min(staying, key=lambda node: float(loads[node]), default=NOWHERE)
    return int(homes[0] if in_set[0] else homes[1])  # case 2
