"""How often a batch begins: as seldom as the bound allows, where that saves anything.

Every batch costs O seconds before its first row. Back to back there are 1 / B of them a second,
with B = O / (1 - a / K) for a load of a on K processors. With an interval I > B there are 1 / I,
each O + I a / K long, and a row that comes at any moment of the interval is answered after
B(I) to I + B(I). So 95% of the rows are in time if

    0.95 I + O + I a / K <= bound,   that is   I <= (bound - O) / (0.95 + a / K).

Only a part of the bound is spent, because batches differ and the load may rise before the next
decision. Where such an interval is hardly longer than a batch, or processors are busy half of the
time, little is saved and batches go back to back; and so they do at once when the bound is missed.
"""

import math

from penstock.model.decision import Decision
from penstock.model.observation import Observation

SPENT = 0.6  # of the bound, on waiting and working
IN_TIME = 0.95
WORTH_IT = 1.5  # an interval of fewer batches' length saves too little
LOW_LOAD = 0.5  # of the processors; above it batches are long by themselves, and room is needed
HYSTERESIS = 0.25  # smaller changes are not made
TICK_S = 0.1


def decide_interval(now_s: float, seen: Observation, max_latency_s: float) -> Decision[float]:
    """The interval for the next batches in seconds, 0 for back to back."""
    batches, processors = seen.batches, seen.processors
    if _missed(seen, max_latency_s):
        said = f"back to back: the bound of {max_latency_s:g} s is missed"
        return Decision(0.0, (said,) if now_s else ())
    if batches is None or batches.count == 0 or processors == 0:
        return Decision(now_s)
    overhead_s, load = batches.mean_overhead_s, seen.offered_load / processors
    if not (overhead_s > 0 and load < 1):
        return Decision(now_s)
    if load > LOW_LOAD * (1 + HYSTERESIS if now_s else 1):
        said = f"back to back: the load is {load:.0%} of {processors} processors"
        return Decision(0.0, (said,) if now_s else ())
    batch_s = overhead_s / (1 - load)
    spent_s = SPENT * max_latency_s
    longest_s = math.floor((spent_s - overhead_s) / (IN_TIME + load) / TICK_S) * TICK_S
    if longest_s < WORTH_IT * batch_s:
        said = (
            f"back to back: a batch takes {batch_s:.2g} s, and an interval that keeps 95% of the "
            f"rows within {spent_s:.2g} s of the {max_latency_s:g} s would be {longest_s:.2g} s"
        )
        return Decision(0.0, (said,) if now_s else ())
    if now_s and abs(longest_s - now_s) < HYSTERESIS * now_s:
        return Decision(now_s)
    often = f"every {now_s:.2g} s" if now_s else f"back to back (about {batch_s:.2g} s)"
    said = (
        f"a batch every {longest_s:.2g} s instead of {often}: each costs {overhead_s:.2g} s before "
        f"its first row, the load is {load:.0%} of {processors} processors, and 95% of the rows "
        f"still come out within {spent_s:.2g} s of the {max_latency_s:g} s allowed"
    )
    return Decision(round(longest_s, 3), (said,))


def _missed(seen: Observation, max_latency_s: float) -> bool:
    behind = seen.backlog_rows > seen.arrival_rate_per_s * max_latency_s
    return behind or (seen.latency is not None and seen.latency.in_time_share < IN_TIME)
