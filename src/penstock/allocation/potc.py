"""PoTC, the power of two choices: each key group may be served by two nodes, chosen by hashing.

Tuples of a key group go to whichever of its two nodes has less work so far, so its load is split
without moving state; in exchange both halves of its state must be merged, on the node of the first
choice, at a cost the balancing does not see. Reference: Nasir et al. 2015 as described in Madsen
et al. 2017, s. 2.2 and s.5.2.1.
"""

from dataclasses import dataclass

import numpy as np

from penstock.allocation.problem import AllocationProblem, Floats, Ints, summed_by

QUANTA = 20  # pieces in which a key group's load arrives


@dataclass(frozen=True)
class Choices:
    """The two nodes of each key group and the share of its load that goes to the first."""

    first: Ints
    second: Ints
    first_share: Floats

    def majority(self) -> Ints:
        """For each key group the node that has the greater part of it."""
        return np.where(self.first_share >= 0.5, self.first, self.second)

    def node_loads(
        self, load: Floats, capacity: Floats, merge_load: Floats | None = None
    ) -> Floats:
        """Load of each node; `merge_load` of a split key group falls on its first choice."""
        work = summed_by(self.first, load * self.first_share, len(capacity))
        work += summed_by(self.second, load * (1.0 - self.first_share), len(capacity))
        if merge_load is not None:
            split = (self.first_share < 1.0) & (self.first_share > 0.0)
            work += summed_by(self.first, merge_load * split, len(capacity))
        return work / capacity


def potc(problem: AllocationProblem, rng: np.random.Generator) -> Choices:
    """Two hashed choices for each key group, and the split that results from greedy sending."""
    nodes, groups = np.flatnonzero(problem.open), len(problem.load)
    first = nodes[rng.integers(len(nodes), size=groups)]
    second = nodes[rng.integers(len(nodes), size=groups)]
    to_first = np.zeros(groups)
    work = problem.fixed.copy()
    arriving = rng.permutation(np.repeat(np.arange(groups), QUANTA))
    for group in arriving:
        one, other = first[group], second[group]
        to_one = work[one] / problem.capacity[one] <= work[other] / problem.capacity[other]
        work[one if to_one else other] += problem.load[group] / QUANTA
        to_first[group] += to_one
    share = np.where(first == second, 1.0, to_first / QUANTA)
    return Choices(first, second, share)
