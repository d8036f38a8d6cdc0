"""When key groups may move for balance alone: a move delays a batch, so not while that would hurt.

Madsen et al. 2017 move state to keep nodes even; in a period in which processors are short or
results late, a delay costs more than some unevenness does. What cannot wait is moved all the same:
what is on nodes that are to be removed, and what makes one node much heavier than the others.
"""

from penstock.control.records import AllocationRecord, DecisionRecord
from penstock.model.observation import Observation

PRESSING = 50.0  # points of load distance: half a processor


def reason_to_delay_moves(
    allocation: AllocationRecord, record: DecisionRecord, newest: Observation, bound_s: float
) -> str | None:
    """Why planned moves should wait for a later period; None if they should not."""
    if allocation.holds_scaling or allocation.leaving or allocation.load_distance >= PRESSING:
        return None
    wanted, current = record.decision.plan.processors, record.current.processors
    if wanted > current:
        return f"{wanted} processors are wanted and {current} are there, which comes first"
    latency = newest.latency
    if latency is not None and latency.mean_s > bound_s:
        return f"results take {latency.mean_s:.3g} s of {bound_s:g} s, and a move delays them more"
    return None
