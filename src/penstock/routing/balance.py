"""How even the load of nodes is."""

import numpy as np
from numpy.typing import ArrayLike

from penstock.model.observation import Floats, Ints


def load_ratio(load: ArrayLike) -> float:
    """Standard deviation over mean of the nodes' loads; 0 without any load.

    Balkesen et al. 2013, s. 6.4.1.

    >>> load_ratio([10, 10, 10])
    0.0
    """
    loads = np.asarray(load, dtype=np.float64)
    mean = float(loads.mean()) if loads.size else 0.0
    return float(loads.std() / mean) if mean > 0 else 0.0


def node_loads(routes: Ints, nodes: int, costs: Floats | Ints | None = None) -> Floats:
    """Rows, or their costs, that each node got."""
    return np.bincount(routes, weights=costs, minlength=nodes).astype(np.float64)
