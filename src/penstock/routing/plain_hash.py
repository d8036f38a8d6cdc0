"""Plain hashing, the baseline: hash(key) modulo the number of nodes.

Balkesen et al. 2013, s. 6.4.3.
"""

import numpy as np

from penstock.model.observation import Ints
from penstock.routing.hashing import Hashes


def plain_hash_routes(hashes: Hashes, nodes: int) -> Ints:
    """The node of each row. Nearly every key moves when `nodes` changes."""
    return (hashes % np.uint64(nodes)).view(np.int64)
