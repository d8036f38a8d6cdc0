"""Guards against restlessness: a band of utilisation, a scale-down window, a time to catch up."""

import math
from dataclasses import dataclass

from penstock.control.guards.guard import GuardContext, Guarded, changes, fitted, held
from penstock.model.decision import ScalingPlan
from penstock.model.observation import Observation


@dataclass(frozen=True)
class UtilisationBand:
    """Nothing changes while processors are used as they should be and nothing is late.

    Utilisation is the load that is offered over the processors there are; a band of no width
    (low equal to high) guards nothing.
    """

    low: float
    high: float

    def check(self, suggested: ScalingPlan, context: GuardContext) -> Guarded:
        newest = context.newest
        if newest is None or not changes(suggested, context):
            return Guarded(suggested)
        used = newest.offered_load / max(1, context.current.processors)
        if not self.low < self.high or not self.low <= used <= self.high:
            return Guarded(suggested)
        if _late(newest, context.limits.max_latency_s):
            return Guarded(suggested)
        return held(
            context,
            "processors are well used and results are in time "
            f"(utilisation {used:.2f} is within {self.low:g} to {self.high:g})",
        )


@dataclass(frozen=True)
class ScaleDownWindow:
    """Scaling in goes no lower than anything that was suggested within the window."""

    window_s: float

    def check(self, suggested: ScalingPlan, context: GuardContext) -> Guarded:
        now = context.current.processors
        if suggested.processors >= now:
            return Guarded(suggested)
        since_s = context.now_s - self.window_s
        recent = [processors for at_s, processors in context.suggested if at_s > since_s]
        highest = min(now, max(recent, default=suggested.processors))
        if highest <= suggested.processors:
            return Guarded(suggested)
        reason = (
            "more processors were suggested a short while ago "
            f"({highest} within the scale-down window of {self.window_s:g} s)"
        )
        return Guarded(fitted(suggested, highest, context), (reason,))


@dataclass(frozen=True)
class CatchUp:
    """A backlog that would be late gets the processors that work it off within a time."""

    within_s: float

    def check(self, suggested: ScalingPlan, context: GuardContext) -> Guarded:
        newest, limits = context.newest, context.limits
        if newest is None or not newest.arrival_rate_per_s > 0:
            return Guarded(suggested)
        behind = newest.backlog_rows - newest.arrival_rate_per_s * limits.max_latency_s
        load = newest.offered_load
        if not (behind > 0 and load > 0):
            return Guarded(suggested)
        per_row_s = load / newest.arrival_rate_per_s
        needed = math.ceil(load + behind * per_row_s / self.within_s)
        raised = min(needed, limits.max_processors)
        if raised <= suggested.processors:
            return Guarded(suggested)
        reason = (
            f"catch-up, rows are behind: {raised} processors work them off in time "
            f"({behind:.0f} rows within {self.within_s:g} s)"
        )
        return Guarded(fitted(suggested, raised, context), (reason,))


def _late(observation: Observation, bound_s: float) -> bool:
    latency = observation.latency
    behind = observation.backlog_rows > observation.arrival_rate_per_s * bound_s
    return behind or (latency is not None and latency.mean_s > bound_s)
