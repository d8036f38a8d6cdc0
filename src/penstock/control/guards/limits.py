"""The guards of every run: bounds, step sizes, cooldowns, and no scaling in while blind or late.

Beside them what keeps an agreement with whoever pays or sleeps: a quota, and times to leave alone.
"""

import math
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from penstock.control.guards.guard import GuardContext, Guarded, changes, fitted, held, splits_anew
from penstock.model.decision import ScalingPlan
from penstock.model.observation import Observation


@dataclass(frozen=True)
class Bounds:
    """Processors stay within the limits."""

    def check(self, suggested: ScalingPlan, context: GuardContext) -> Guarded:
        low, high = context.limits.min_processors, context.limits.max_processors
        allowed = min(max(suggested.processors, low), high)
        if allowed == suggested.processors:
            return Guarded(suggested)
        which = f"no more than {high}" if suggested.processors > high else f"at least {low}"
        reason = f"{which} processors are allowed ({suggested.processors} wanted)"
        return Guarded(fitted(suggested, allowed, context), (reason,))


@dataclass(frozen=True)
class LargestStep:
    """At most so many processors are added, or removed, in one act."""

    out_processors: float  # infinite where any number may be
    in_processors: float

    def check(self, suggested: ScalingPlan, context: GuardContext) -> Guarded:
        now = context.current.processors
        allowed = int(
            min(max(suggested.processors, now - self.in_processors), now + self.out_processors)
        )
        if allowed == suggested.processors:
            return Guarded(suggested)
        reason = (
            f"one step at a time: processors {now} -> {allowed} ({suggested.processors} wanted)"
        )
        return Guarded(fitted(suggested, allowed, context), (reason,))


JITTER = 0.1  # of a period, by which one may end early


@dataclass(frozen=True)
class Cooldown:
    """After an act, scaling out and scaling in each wait their own time.

    Decisions come once a period, never quite on time: waiting for two periods must not become
    waiting for three because one of them ended a moment early.
    """

    out_s: float
    in_s: float

    def check(self, suggested: ScalingPlan, context: GuardContext) -> Guarded:
        change = suggested.processors - context.current.processors
        if context.last_act_at_s is None or not changes(suggested, context):
            return Guarded(suggested)
        age_s = context.now_s - context.last_act_at_s
        wait_s, which = (self.out_s, "scaling out") if change > 0 else (self.in_s, "scaling in")
        if change == 0:  # some component gives processors up, and another gets them
            wait_s, which = max(self.out_s, self.in_s), "another split"
        early_s = JITTER * context.newest.period_s if context.newest is not None else 0.0
        if age_s >= wait_s - early_s or age_s < 0:  # below 0 the machine's clock was set back
            return Guarded(suggested)
        return held(
            context,
            f"cooldown, too soon after the last change ({age_s:.0f} s ago; {which} waits "
            f"{wait_s:g} s)",
        )


@dataclass(frozen=True)
class NeedsObservation:
    """Nothing scales in on missing or old measurements."""

    stale_after_s: float

    def check(self, suggested: ScalingPlan, context: GuardContext) -> Guarded:
        """Hold scaling in while it would be blind; another split scales some component in too."""
        fewer = suggested.processors < context.current.processors
        if not (fewer or splits_anew(suggested, context)):
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
            return (
                f"the newest observation is too old ({age_s:.0f} s; at most "
                f"{self.stale_after_s:g} s)"
            )
        return None


@dataclass(frozen=True)
class BacklogFirst:
    """Nothing scales in while more waits than the latency bound allows.

    By Little's law the rows of `max_latency_s` at the present input rate may be on their way; what
    is beyond that is already late or will be.
    """

    def check(self, suggested: ScalingPlan, context: GuardContext) -> Guarded:
        newest = context.newest
        if suggested.processors >= context.current.processors or newest is None:
            return Guarded(suggested)
        allowed_rows = newest.arrival_rate_per_s * context.limits.max_latency_s
        if not newest.backlog_rows > allowed_rows:
            return Guarded(suggested)
        return held(
            context,
            f"no scaling in: too many rows wait (backlog {newest.backlog_rows:.0f}; the bound of "
            f"{context.limits.max_latency_s:g} s allows {allowed_rows:.0f})",
        )


@dataclass(frozen=True)
class MemoryFirst:
    """Nothing scales in where those that stay would have too little memory for what is kept.

    That is where the state in memory would not fit, and where garbage collection takes a tenth of
    the time of tasks already: with fewer executors it would take more, and results with it.
    """

    most_gc_share: float = 0.1

    def check(self, suggested: ScalingPlan, context: GuardContext) -> Guarded:
        if suggested.processors >= context.current.processors or context.newest is None:
            return Guarded(suggested)
        reason = self._too_small(suggested.processors, context.newest) or self._collects(
            context.newest
        )
        return Guarded(suggested) if reason is None else held(context, f"no scaling in: {reason}")

    def _too_small(self, processors: int, newest: Observation) -> str | None:
        serving = [node for node in newest.nodes if not node.draining]
        limits = [node.state_memory_bytes for node in serving]
        known = sorted(limit for limit in limits if limit is not None)
        if len(known) < len(serving) or not serving:
            return None
        held_bytes = sum(float(np.nansum(one.state_bytes)) for one in newest.key_groups.values())
        stay = max(1, round(len(serving) * processors / max(1, newest.processors)))
        if held_bytes <= sum(known[:stay]):
            return None
        return (
            f"state of {held_bytes / 1e6:.0f} MB would not fit the {sum(known[:stay]) / 1e6:.0f} "
            f"MB of the {stay} executors that would stay"
        )

    def _collects(self, newest: Observation) -> str | None:
        serving = [n for n in newest.nodes if not n.draining and n.gc_s is not None]
        busy_s, gc_s = (sum(getattr(n, name) for n in serving) for name in ("busy_s", "gc_s"))
        if not (busy_s > 0 and gc_s >= self.most_gc_share * busy_s):
            return None
        return (
            f"garbage collection takes {gc_s / busy_s:.0%} of the time of tasks "
            f"({self.most_gc_share:.0%} are too much)"
        )


@dataclass(frozen=True)
class Quota:
    """No more processors once so many processor-seconds were used within the window.

    What runs stays: a quota that is used up must not break a promise that is being kept.
    """

    processor_s: float
    window_s: float

    def check(self, suggested: ScalingPlan, context: GuardContext) -> Guarded:
        if suggested.processors <= context.current.processors:
            return Guarded(suggested)
        since_s = context.now_s - self.window_s
        used = sum(spent for at_s, spent in context.used if at_s > since_s)
        if used < self.processor_s:
            return Guarded(suggested)
        return held(
            context,
            f"the quota is used up ({used:.0f} processor-seconds within {self.window_s:g} s; "
            f"{self.processor_s:g} are allowed)",
        )


@dataclass(frozen=True)
class ExcludedTimes:
    """Nothing changes at certain times of the day (UTC); a span may pass midnight."""

    spans: tuple[tuple[int, int], ...]  # minutes of the day: from, until

    def check(self, suggested: ScalingPlan, context: GuardContext) -> Guarded:
        if not changes(suggested, context):
            return Guarded(suggested)
        now = datetime.fromtimestamp(context.now_s, tz=UTC)
        minute = now.hour * 60 + now.minute
        for start, end in self.spans:
            inside = start <= minute < end if start < end else minute >= start or minute < end
            if inside:
                return held(
                    context,
                    "nothing changes at this time of day: excluded time "
                    f"({_clock(start)} to {_clock(end)} UTC)",
                )
        return Guarded(suggested)


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
