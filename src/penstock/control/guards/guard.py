"""What a guard is: a rule between a policy's suggestion and the cluster.

Each takes a suggested plan and returns the guarded one, with one line for a person when it changed
something. They are pure: time comes in as a number. A guard that holds returns the current plan, so
a run that starts outside its bounds reaches them as soon as the others allow it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush, heapreplace
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
    plan: ScalingPlan,
    processors: int,
    sharing: Literal["time", "space"] = "time",
    newest: Observation | None = None,
) -> ScalingPlan:
    """The plan with another total.

    Components that share in time may each use all processors. Those that share in space must fit
    side by side: each keeps one, and those give way whose processors are then the least busy. Where
    loads are not measured, what was planned stands for them.
    """
    if sharing == "time":
        shared = {name: min(n, processors) for name, n in plan.parallelism.items()}
        return ScalingPlan(shared, processors)
    given = dict(plan.parallelism)
    loads = _loads(plan, newest)
    surplus = sum(given.values()) - max(processors, len(given))
    queue = [(loads[name] / (n - 1), name) for name, n in given.items() if n > 1]
    heapify(queue)
    for _ in range(surplus):
        _, name = heappop(queue)
        given[name] -= 1
        if given[name] > 1:
            heappush(queue, (loads[name] / (given[name] - 1), name))
    return ScalingPlan(given, processors)


def fitted(plan: ScalingPlan, processors: int, context: GuardContext) -> ScalingPlan:
    """The plan with another total; one that is larger goes to the busiest components, in space."""
    changed = resized(plan, processors, context.sharing, context.newest)
    missing = processors - sum(changed.parallelism.values())
    if context.sharing == "time" or missing <= 0 or not changed.parallelism:
        return changed
    given, loads = dict(changed.parallelism), _loads(plan, context.newest)
    queue = [(-loads[name] / n, name) for name, n in given.items()]
    heapify(queue)
    for _ in range(missing):
        _, name = queue[0]
        given[name] += 1
        heapreplace(queue, (-loads[name] / given[name], name))
    return ScalingPlan(given, processors)


def _loads(plan: ScalingPlan, newest: Observation | None) -> dict[str, float]:
    """Processors that each component keeps busy; what was planned, unless all are measured."""
    seen = newest.components if newest is not None else ()
    loads = {one.name: one.arrival_rate_per_s * one.service_time_s for one in seen}
    found = {name: loads.get(name, math.nan) for name in plan.parallelism}
    if all(math.isfinite(load) for load in found.values()) and sum(found.values()) > 0:
        return found
    return {name: float(n) for name, n in plan.parallelism.items()}


def splits_anew(suggested: ScalingPlan, context: GuardContext) -> bool:
    """Whether processors move between components while their number stays."""
    same = suggested.processors == context.current.processors
    return (
        context.sharing == "space"
        and same
        and dict(suggested.parallelism) != dict(context.current.parallelism)
    )


def changes(suggested: ScalingPlan, context: GuardContext) -> bool:
    """Whether anything would be other than it is."""
    return suggested.processors != context.current.processors or splits_anew(suggested, context)


def held(context: GuardContext, reason: str) -> Guarded:
    """What runs stays, for this reason."""
    return Guarded(context.current, (reason,))
