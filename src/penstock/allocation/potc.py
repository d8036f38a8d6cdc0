"""PoTC, the power of two choices: each key group may be served by two nodes, chosen by hashing.

Tuples of a key group go to whichever of its two nodes has less work so far, so its load is split
without moving state; in exchange both halves of its state must be merged, on the node of the first
choice, at a cost the balancing does not see. Reference: Nasir et al. 2015 as described in Madsen
et al. 2017, s. 2.2 and s.5.2.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from penstock.allocation.problem import AllocationProblem, Floats, Ints, summed_by

ABOUT_EVEN = 0.25  # from a half
QUANTA = 20  # pieces in which a key group's load arrives


@dataclass(frozen=True)
class Choices:
    """The two nodes of each key group and the share of its load that goes to the first."""

    first: Ints
    second: Ints
    first_share: Floats

    def majority(self, home: Ints) -> Ints:
        """For each key group the node that has the greater part of it.

        One that is split about evenly stays where it is, if that is one of its two nodes.
        """
        greater = np.where(self.first_share >= 0.5, self.first, self.second)
        even = np.abs(self.first_share - 0.5) <= ABOUT_EVEN
        stays = even & ((home == self.first) | (home == self.second))
        return np.where(stays, home, greater)

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


def potc(
    problem: AllocationProblem, rng: np.random.Generator, names: Sequence[str] = ()
) -> Choices:
    """Two hashed choices for each key group, and the split that results from greedy sending.

    The same generator gives the same hashes. `names` are those of the nodes, by which they are
    known when others come or go.
    """
    groups = len(problem.load)
    first, second = _choices(problem, names, int(rng.integers(2**32)))
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


def _choices(problem: AllocationProblem, names: Sequence[str], seed: int) -> tuple[Ints, Ints]:
    """For each of two hash functions the node with the highest hash of key group and node.

    A node that comes or goes changes only the choices that are or were on it.
    """
    nodes = np.flatnonzero(problem.open)
    known = [names[node] if names else str(node) for node in nodes.tolist()]
    of_node = np.array([crc32(name.encode()) for name in known], dtype=np.uint64)
    of_group = np.arange(len(problem.load), dtype=np.uint64)[:, None] << np.uint64(32)
    chosen = []
    for function in range(2):
        salt = np.uint64((2 * seed + function) * 0x9E3779B97F4A7C15 % 2**64)
        chosen.append(nodes[_mixed((of_group | of_node) ^ salt).argmax(axis=1)])
    return chosen[0], chosen[1]


def _mixed(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64 (Steele et al. 2014): every bit depends on all."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
