"""Consistent hashing with virtual nodes.

Balkesen et al. 2013, s. 4.1, after Karger et al. 1997.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock.errors import InvalidInput
from penstock.model.observation import Floats, Ints
from penstock.routing.hashing import Hashes, mixed

SLOT_BITS = 16  # keys stand at 2**16 places of the ring, so that a look-up is one table access
MOST_NODES = 4096  # 16 places for each, on average
DEFAULT_VIRTUAL_NODES = 256
_SHIFT = np.uint64(64 - SLOT_BITS)


@dataclass(frozen=True)
class Ring:
    """Each node has `virtual_nodes` points on a circle; a key belongs to the next point after it.

    A node that joins takes keys only for itself, and one that leaves gives up only its own. The
    number of keys for each node varies by about 1 / sqrt(virtual_nodes).
    Differs from Balkesen et al. 2013, s. 4.1: a key's place is the first 16 bits of its hash.
    """

    nodes: tuple[int, ...]  # ids from 0 to 2**31; ring_of(n) gives them as 0 to n - 1
    virtual_nodes: int = DEFAULT_VIRTUAL_NODES

    def __post_init__(self) -> None:
        if not 1 <= len(self.nodes) <= MOST_NODES:
            raise InvalidInput(
                f"a ring has {len(self.nodes)} nodes; give 1 to {MOST_NODES} of them."
            )
        if len(set(self.nodes)) < len(self.nodes):
            raise InvalidInput("a ring names a node twice; give distinct ids.")
        if not all(0 <= node < 2**31 for node in self.nodes):
            raise InvalidInput(f"a ring has a node {min(self.nodes)}; ids are from 0 to 2**31.")
        if not 1 <= self.virtual_nodes <= 65_536:
            raise InvalidInput(f"virtual_nodes is {self.virtual_nodes}; give 1 to 65536.")

    def routes(self, hashes: Hashes) -> Ints:
        """The node of each row."""
        return self.owners.take(slots(hashes))

    @cached_property
    def points(self) -> Hashes:
        """Places of the virtual nodes on the circle, ascending."""
        return self._sorted[0]

    @cached_property
    def point_nodes(self) -> Ints:
        """The node of each point."""
        return self._sorted[1]

    @cached_property
    def owners(self) -> Ints:
        """The node of each of the 2**16 places."""
        starts = np.arange(1 << SLOT_BITS, dtype=np.uint64) << _SHIFT
        after = np.searchsorted(self.points, starts) % len(self.points)
        return self.point_nodes[after]

    @cached_property
    def shares(self) -> Floats:
        """The share of the places that each node has, in the order of `nodes`."""
        held = np.bincount(self.places(self.owners), minlength=len(self.nodes))
        return held / len(self.owners)

    def places(self, nodes: Ints) -> Ints:
        """Where each of some nodes stands in `nodes`."""
        order = np.argsort(self.nodes)
        return order[np.searchsorted(np.array(self.nodes)[order], nodes)]

    @cached_property
    def _sorted(self) -> tuple[Hashes, Ints]:
        nodes = np.repeat(np.array(self.nodes, dtype=np.int64), self.virtual_nodes)
        replicas = np.tile(np.arange(self.virtual_nodes), len(self.nodes))
        # Twice mixed, so that no key that is a small number stands on a point.
        points = mixed(mixed((nodes << 20 | replicas).view(np.uint64)))
        order = np.lexsort((nodes, points))
        return points[order], nodes[order]


def ring_of(nodes: int | Iterable[int], virtual_nodes: int = DEFAULT_VIRTUAL_NODES) -> Ring:
    """A ring of n nodes called 0 to n - 1, or of the nodes given."""
    ids = range(min(nodes, MOST_NODES + 1)) if isinstance(nodes, int) else nodes
    return Ring(tuple(ids), virtual_nodes)


def slots(hashes: Hashes) -> Ints:
    """The place of each hash on the ring."""
    return (hashes >> _SHIFT).view(np.int64)
