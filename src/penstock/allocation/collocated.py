"""Key groups that live together and talk: partitions of them, which move as one.

Madsen et al. 2017, Algorithm 2, step 2.
"""

import math
from dataclasses import dataclass, replace

import networkx as nx
import numpy as np

from penstock.allocation.partition import split
from penstock.allocation.problem import (
    TOLERANCE,
    AllocationProblem,
    Floats,
    Ints,
    Resource,
    summed_by,
)
from penstock.allocation.traffic import Traffic


@dataclass(frozen=True)
class Partitions:
    """The partition of each key group, by number; all key groups of one have the same home."""

    number: Ints
    first: Ints  # a key group of each partition

    @property
    def sizes(self) -> Ints:
        """Key groups of each partition."""
        return np.bincount(self.number, minlength=len(self.first))

    def merged(self, problem: AllocationProblem) -> AllocationProblem:
        """The problem with partitions as its key groups."""

        def summed(column: Floats) -> Floats:
            return summed_by(self.number, column, len(self.first))

        return replace(
            problem,
            load=summed(problem.load),
            home=problem.home[self.first],
            migration_cost=summed(problem.move_cost),
            pinned=problem.pinned[self.first],
            resources=tuple(Resource(r.name, summed(r.use), r.limit) for r in problem.resources),
        )


def each_alone(groups: int) -> Partitions:
    """Every key group by itself."""
    return Partitions(np.arange(groups), np.arange(groups))


def partitions(
    problem: AllocationProblem,
    traffic: Traffic,
    collocated: Ints,
    max_load: float,
    rng: np.random.Generator,
) -> Partitions:
    """Sets joined by rows of the traffic, cut until each is within the budget and the load."""
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
            load_share = float(problem.load[part].sum()) / max_load
            # The paper's ceilings, but never so many that a part would be empty.
            wanted = min(len(part), math.ceil(max(cost_share, load_share) - TOLERANCE))
            if wanted <= 1:
                units[part] = part[0]
                continue
            weight = problem.move_cost if cost_share > load_share else problem.load
            waiting += split(part, weight[part], traffic, wanted, int(rng.integers(2**31)))
    first, number = np.unique(units, return_inverse=True)
    return Partitions(number, first)
