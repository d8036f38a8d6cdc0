"""Guards: what stands between a policy's suggestion and the cluster.

Each takes a suggested plan and returns the guarded one, with one line for a person when it changed
something. They are pure: time comes in as a number. A guard that holds returns the current plan, so
a run that starts outside its bounds reaches them as soon as the others allow it.
"""

import math
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


@dataclass(frozen=True)
class Bounds:
    """Processors stay within the limits."""

    def check(self, suggested: ScalingPlan, context: GuardContext) -> Guarded:
        """Clamp to the limits."""
        low, high = context.limits.min_processors, context.limits.max_processors
        allowed = min(max(suggested.processors, low), high)
        if allowed == suggested.processors:
            return Guarded(suggested)
        which = f"maximum {high}" if suggested.processors > high else f"minimum {low}"
        reason = f"bounds: {suggested.processors} processors wanted, {which}"
        return Guarded(resized(suggested, allowed, context.sharing), (reason,))


@dataclass(frozen=True)
class LargestStep:
    """At most so many processors are added, or removed, in one act."""

    out_processors: int
    in_processors: int

    def check(self, suggested: ScalingPlan, context: GuardContext) -> Guarded:
        """Shorten the step."""
        now = context.current.processors
        allowed = min(
            max(suggested.processors, now - self.in_processors), now + self.out_processors
        )
        if allowed == suggested.processors:
            return Guarded(suggested)
        reason = f"step: {now} -> {suggested.processors} processors cut to {now} -> {allowed}"
        return Guarded(resized(suggested, allowed, context.sharing), (reason,))


@dataclass(frozen=True)
class Cooldown:
    """After an act, scaling out and scaling in each wait their own time."""

    out_s: float
    in_s: float

    def check(self, suggested: ScalingPlan, context: GuardContext) -> Guarded:
        """Hold while the last act is too young."""
        change = suggested.processors - context.current.processors
        if change == 0 or context.last_act_at_s is None:
            return Guarded(suggested)
        age_s = context.now_s - context.last_act_at_s
        wait_s, which = (self.out_s, "out") if change > 0 else (self.in_s, "in")
        if age_s >= wait_s or age_s < 0:  # below 0 the machine's clock was set back
            return Guarded(suggested)
        return held(
            context, f"cooldown: last act {age_s:.0f} s ago, scaling {which} waits {wait_s:g} s"
        )


@dataclass(frozen=True)
class NeedsObservation:
    """Nothing scales in on missing or old measurements."""

    stale_after_s: float

    def check(self, suggested: ScalingPlan, context: GuardContext) -> Guarded:
        """Hold scaling in while it would be blind."""
        if suggested.processors >= context.current.processors:
            return Guarded(suggested)
        blind = self._blindness(context)
        return held(context, f"no scaling in: {blind}") if blind else Guarded(suggested)

    def _blindness(self, context: GuardContext) -> str | None:
        newest = context.newest
        if newest is None:
            return "nothing was observed yet"
        if newest.missing:
            return f"not measured: {', '.join(newest.missing)}"
        if math.isnan(newest.arrival_rate_per_s) or math.isnan(newest.backlog_rows):
            return "input rate or backlog is not known"
        age_s = context.now_s - newest.at_s
        if age_s > self.stale_after_s:
            return f"the newest observation is {age_s:.0f} s old, more than {self.stale_after_s:g}"
        return None


@dataclass(frozen=True)
class BacklogFirst:
    """Nothing scales in while more waits than the latency bound allows.

    By Little's law the rows of `max_latency_s` at the present input rate may be on their way; what
    is beyond that is already late or will be.
    """

    def check(self, suggested: ScalingPlan, context: GuardContext) -> Guarded:
        """Hold scaling in until the backlog is gone."""
        newest = context.newest
        if suggested.processors >= context.current.processors or newest is None:
            return Guarded(suggested)
        allowed_rows = newest.arrival_rate_per_s * context.limits.max_latency_s
        if not newest.backlog_rows > allowed_rows:
            return Guarded(suggested)
        return held(
            context,
            f"no scaling in: backlog {newest.backlog_rows:.0f} rows, the bound of "
            f"{context.limits.max_latency_s:g} s allows {allowed_rows:.0f}",
        )


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
