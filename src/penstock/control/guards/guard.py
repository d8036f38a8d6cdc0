"""What a guard is: a rule between a policy's suggestion and the cluster.

Each takes a suggested plan and returns the guarded one, with one line for a person when it changed
something. They are pure: time comes in as a number. A guard that holds returns the current plan, so
a run that starts outside its bounds reaches them as soon as the others allow it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from penstock.model.decision import Limits, ScalingPlan
from penstock.model.observation import Observation


@dataclass(frozen=True)
class GuardContext:
    """What a guard may look at."""

    now_s: float
    current: ScalingPlan
    limits: Limits
    newest: Observation | None = None
    last_act_at_s: float | None = None
    sharing: Literal["time", "space"] = "time"
    suggested: tuple[tuple[float, int], ...] = ()  # when, and how many processors; oldest first
    used: tuple[tuple[float, float], ...] = ()  # when, and how many processor-seconds


@dataclass(frozen=True)
class Guarded:
    """A plan that may be carried out, and why it is not the suggested one."""

    plan: ScalingPlan
    reasons: tuple[str, ...] = ()


class Guard(Protocol):
    """One rule about suggestions."""

    def check(self, suggested: ScalingPlan, context: GuardContext) -> Guarded:
        """The suggestion, or what it must become."""


def apply_guards(guards: Sequence[Guard], suggested: ScalingPlan, context: GuardContext) -> Guarded:
    """The suggestion through all guards, with every reason they gave."""
    plan, reasons = suggested, tuple[str, ...]()
    for guard in guards:
        guarded = guard.check(plan, context)
        plan, reasons = guarded.plan, reasons + guarded.reasons
    return Guarded(plan, reasons)


def resized(
    plan: ScalingPlan, processors: int, sharing: Literal["time", "space"] = "time"
) -> ScalingPlan:
    """The plan with another total.

    Components that share in time may each use all processors. Those that share in space must fit
    side by side: the largest gives way first, the first by name on a tie, and each keeps one.
    """
    parallelism = dict(plan.parallelism)
    if sharing == "time":
        parallelism = {name: min(n, processors) for name, n in parallelism.items()}
    else:
        while sum(parallelism.values()) > max(processors, len(parallelism)):
            largest = max(sorted(parallelism), key=lambda name: parallelism[name])
            parallelism[largest] -= 1
    return ScalingPlan(parallelism, processors)


def held(context: GuardContext, reason: str) -> Guarded:
    """What runs stays, for this reason."""
    return Guarded(context.current, (reason,))
