"""A lane for streams that come within a period, until Algorithm 1 next looks at all of them.

Best fit in decreasing order of need, as line 10 of Algorithm 1 (Balkesen et al. 2013, s. 2.2)
places new streams, beside what the lanes were last believed to need; no other stream moves.
"""

import numpy as np

from penstock.admission.best_fit import best_fit
from penstock.admission.ticks import FULL, in_ticks
from penstock.model.observation import Floats, Ints


def lanes_for_new(
    need_per_s: Floats, load_per_s: Floats, lane_capacity_per_s: float, accept_below: float
) -> Ints:
    """The lane of each new stream, by row of the loads; rows beyond are new lanes.

    >>> lanes_for_new(np.array([3.0, 5.0, 6.0]), np.array([4.0, 2.0]), 10.0, 1.0).tolist()
    [1, 1, 0]
    """
    size, load = (in_ticks(part, lane_capacity_per_s) for part in (need_per_s, load_per_s))
    level = int(accept_below * FULL)
    order = np.argsort(-need_per_s, kind="stable")
    lane = np.empty(len(size), dtype=np.int64)
    lane[order] = best_fit(size[order], level - load, level)
    return lane
