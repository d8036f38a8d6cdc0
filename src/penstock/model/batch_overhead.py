"""What a micro-batch costs beside its rows, and how late results are at a steady load.

With O(K) the fixed cost of a batch on K processors and u the part of them that rows keep busy,

    O(K) = fixed + per_processor K + work / K
    B    = O(K) / (1 - u)      back to back: a batch takes what came during the one before
    B    = O(K) + u I          at an interval I that is not shorter than B

A row waits between 0 and B (or I) for its batch to begin, so the share q of the rows takes at most
q B + B (or q I + B).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BatchOverhead:
    """O(K), the fixed cost of a batch."""

    fixed_s: float
    per_processor_s: float = 0.0
    work_s: float = 0.0  # divided among all processors

    def at(self, processors: int) -> float:
        """Seconds on that many processors."""
        return self.fixed_s + self.per_processor_s * processors + self.work_s / processors


USUAL_OVERHEAD = BatchOverhead(0.25)  # before any batch was measured


def steady_latency_s(
    own_s: Floats, used: Floats, share: float | Floats = 1.0, interval_s: float | Floats = 0.0
) -> Floats:
    """Latency that a share of the rows stays within; infinite where rows pile up.

    >>> steady_latency_s(np.array([0.5]), np.array([0.5]), 0.99).tolist()
    [1.99]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        back_to_back = np.where(used < 1, (1 + share) * own_s / (1 - used), np.inf)
        at_interval = own_s + used * interval_s
    paced = (np.asarray(interval_s) > 0) & (at_interval <= interval_s)
    return np.where(paced, share * interval_s + at_interval, back_to_back)
