"""What is to be decided: key groups with their load, where they live, and what a move costs."""

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from penstock.errors import InvalidInput

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

NOWHERE = -1  # the home of a key group whose node was lost, and the pin of one that is free
TOLERANCE = 1e-9


def summed_by(key: Ints, value: Floats, keys: int) -> Floats:
    """The sum of the values of each key from 0 on."""
    return np.bincount(key, weights=value, minlength=keys).astype(np.float64, copy=False)


@dataclass(frozen=True)
class Resource:
    """A further resource, limited but not balanced.

    Madsen et al. 2017, s. 4.3.1, multi-dimensional load.
    """

    name: str
    use: Floats  # for each key group
    limit: Floats  # for each node


@dataclass(frozen=True)
class AllocationProblem:
    """Key groups (columns `load`, `home`, `migration_cost`, `pinned`) and nodes (the others).

    `load` is in percentage points of a node of capacity 1. A migration budget counted in moves is
    a cost of 1 for each key group. Key groups without a home are placed at no cost: they have no
    state to move. A pinned key group must be on the node it names. `other_load` is work of each
    node that no key group does and no move takes away, in the same points; of a draining node it
    does not count.
    """

    load: Floats
    home: Ints
    capacity: Floats
    draining: Bools
    migration_cost: Floats
    max_migration_cost: float = math.inf
    resources: tuple[Resource, ...] = ()
    pinned: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    other_load: Floats = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        if len(self.capacity) == 0:
            raise InvalidInput("nodes is empty; give at least one node.")
        if not len(self.load) == len(self.home) == len(self.migration_cost):
            raise ValueError("the columns of key groups must be of one length")
        if len(self.pinned) == 0:
            object.__setattr__(self, "pinned", np.full(len(self.load), NOWHERE))
        if len(self.other_load) == 0:
            object.__setattr__(self, "other_load", np.zeros(len(self.capacity)))

    @cached_property
    def all_draining(self) -> bool:
        """Nothing may stay anywhere: there is no node to go to."""
        return bool(self.draining.all())

    @cached_property
    def open(self) -> Bools:
        """Nodes that may receive key groups; all of them when all are draining."""
        return np.ones_like(self.draining) if self.all_draining else ~self.draining

    @cached_property
    def mean(self) -> float:
        """The load every open node would have if work were a fluid.

        Differs from Madsen et al. 2017, Table 2: not rounded up, so that the distance has no unit
        in it.
        """
        return self.total / float(self.capacity[self.open].sum())

    @cached_property
    def fixed(self) -> Floats:
        """Work of each node that placing key groups does not change."""
        return np.where(self.open, self.other_load, 0.0)

    @cached_property
    def total(self) -> float:
        """All work that nodes have to carry."""
        return float(self.load.sum() + self.fixed.sum())

    @cached_property
    def move_cost(self) -> Floats:
        """What leaving home costs; nothing for those without a home."""
        return np.where(self.home == NOWHERE, 0.0, self.migration_cost)

    @cached_property
    def typical_cost(self) -> float:
        """The middle one of the costs of moves that cost something; 1 when none does."""
        costs = self.move_cost[self.move_cost > 0]
        return float(np.median(costs)) if costs.size else 1.0

    @cached_property
    def must_drain(self) -> bool:
        """Whether the budget pays for emptying every draining node in this round.

        Differs from Madsen et al. 2017, Lemma 2: with key groups that cannot be split the least
        distance may keep one on a draining node for ever, so draining is demanded as soon as it is
        affordable.
        """
        leaving = (self.home != NOWHERE) & ~self.open[self.home]
        forced = leaving | ((self.pinned != NOWHERE) & (self.pinned != self.home))
        return float(self.move_cost[forced].sum()) <= self.max_migration_cost + TOLERANCE

    @cached_property
    def must_empty(self) -> bool:
        """Whether there is something to drain, and the budget pays for all of it."""
        return self.must_drain and bool((~self.open[self.home[self.home != NOWHERE]]).any())

    def totals(self, placement: Ints) -> Floats:
        """Work on each node, before it is divided by the node's capacity."""
        placed = placement != NOWHERE
        return self.fixed + summed_by(placement[placed], self.load[placed], len(self.capacity))

    def node_loads(self, placement: Ints) -> Floats:
        """Load of each node in points of its own capacity."""
        return self.totals(placement) / self.capacity

    def cost(self, placement: Ints) -> float:
        """What it costs to come from home to a placement."""
        return float(self.move_cost[placement != self.home].sum())

    def overuse(self, placement: Ints) -> float:
        """By how much the further resources are exceeded, in shares of the limits, summed."""
        total = 0.0
        for resource in self.resources:
            used = summed_by(placement, resource.use, len(self.capacity))
            over = np.maximum(used - resource.limit, 0.0) / np.maximum(resource.limit, TOLERANCE)
            total += float(over.sum())
        return total


@dataclass(frozen=True)
class Distance:
    """How far a placement is from balance (Madsen et al. 2017, s. 4.3.1).

    `upper` and `lower` are the paper's d - d_u and d - d_l; `upper` counts draining nodes too, as
    constraint (3) does.
    """

    upper: float
    lower: float
    draining_load: float  # still on nodes to be removed
    draining_groups: int  # key groups still on them, also those without load

    @property
    def load_distance(self) -> float:
        """The paper's d."""
        return max(self.upper, self.lower)


def distance(problem: AllocationProblem, placement: Ints) -> Distance:
    """Upper and lower deviation from the mean, and what is left on draining nodes."""
    loads = problem.node_loads(placement)
    opened = loads[problem.open]
    return Distance(
        upper=float(loads.max() - problem.mean),
        lower=float(problem.mean - opened.min()),
        draining_load=float(problem.totals(placement)[~problem.open].sum()),
        draining_groups=int(np.count_nonzero(~problem.open[placement[placement != NOWHERE]])),
    )


Rank = tuple[float, float, float, float, float]


def rank(problem: AllocationProblem, placement: Ints) -> Rank:
    """What is compared between placements, smallest best, one level after another.

    Resources kept, draining done where it is affordable, least distance d, least load on draining
    nodes, least sum of the two deviations (the paper's second level, -w_2 (d_u + d_l)).
    """
    found = distance(problem, placement)
    demanded = found.draining_groups if problem.must_drain else 0
    return (
        round(problem.overuse(placement), 9),
        float(demanded),
        round(found.load_distance, 9),
        round(found.draining_load, 9),
        round(found.upper + found.lower, 9),
    )
