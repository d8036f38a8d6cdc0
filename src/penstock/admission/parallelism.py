"""Query and merge nodes for the rate that is coming.

Balkesen et al. 2013, s. 3.2, eq. 1a and 1b.
"""

import math
from dataclasses import dataclass

from penstock.errors import InvalidInput

HEADROOM = 0.1


@dataclass(frozen=True)
class QueryCosts:
    """What a tuple costs, and how much of a node is kept free."""

    query_s_per_tuple: float  # c_op
    merge_s_per_tuple: float  # c_merge
    query_node_tuples_per_s: float  # C_op: what one query node passes on at most
    headroom: float = HEADROOM  # H: share of a node not used for operators

    def __post_init__(self) -> None:
        for name in ("query_s_per_tuple", "merge_s_per_tuple", "query_node_tuples_per_s"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise InvalidInput(f"{name} is {value}; it must be a finite number of at least 0.")
        if not 0 <= self.headroom < 1:
            raise InvalidInput(f"headroom is {self.headroom}; it must be in [0, 1).")


@dataclass(frozen=True)
class NodeCounts:
    """Nodes of the processing layer."""

    query: int
    merge: int


def node_counts(total_rate_per_s: float, costs: QueryCosts) -> NodeCounts:
    """The fewest whole nodes of which none is busier than 1 - H.

    (sum RF / n_p) c_op = 1 - H gives the query nodes n_p; (n_p C_op / n_m) c_merge = 1 - H the
    merge nodes n_m, with every query node near saturation. At least one of each.

    >>> node_counts(9_000.0, QueryCosts(0.001, 0.0001, 900.0))
    NodeCounts(query=10, merge=1)
    """
    usable = 1.0 - costs.headroom
    query = _nodes(total_rate_per_s * costs.query_s_per_tuple / usable)
    merge = _nodes(query * costs.query_node_tuples_per_s * costs.merge_s_per_tuple / usable)
    return NodeCounts(query, merge)


def _nodes(share: float) -> int:
    return max(1, math.ceil(share - 1e-9))  # a share that is whole but for rounding is whole
