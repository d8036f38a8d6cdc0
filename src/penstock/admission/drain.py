"""Which lanes to empty when the others have room for their streams.

Algorithm 1 only ever adds lanes. When the load falls, this names lanes to drain: as many as leave
the rest at most `drain_below` full, those with the fewest streams first, since each stream moved
is a redirection. The gap between that share and a full lane keeps lanes from coming and going.
"""

import math

import numpy as np

from penstock.admission.problem import Bools, Situation
from penstock.admission.ticks import LANE
from penstock.model.observation import Ints


def lanes_to_drain(situation: Situation, lane: Ints, takers: Bools) -> Ints:
    """Lanes that might be emptied, the best first, given where streams would otherwise be."""
    problem = situation.problem
    none = np.empty(0, dtype=np.int64)
    if problem.drain_below is None or len(lane) == 0:
        return none
    count = np.bincount(lane, minlength=problem.lanes)
    used = int(np.count_nonzero(count))
    total = int(situation.size.sum())
    needed = max(1, math.ceil(total / (problem.drain_below * LANE)))
    # Only lanes that take streams are calm enough to be asked; a new lane has just been needed.
    candidates = np.flatnonzero(takers & (count[: problem.lanes] > 0))
    surplus = min(used - needed, len(candidates) - 1)
    if surplus <= 0 or used > np.count_nonzero(count[: problem.lanes]):
        return none
    load = np.bincount(lane, situation.size)[candidates]
    return candidates[np.lexsort((load, count[candidates]))[:surplus]]
