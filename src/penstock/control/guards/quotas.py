"""Guards that keep an agreement with whoever pays or sleeps: a quota, and times to leave alone."""

from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.control.guards.guard import GuardContext, Guarded, held
from penstock.model.decision import ScalingPlan


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
            f"quota: {used:.0f} processor-seconds were used within {self.window_s:g} s, "
            f"{self.processor_s:g} are allowed",
        )


@dataclass(frozen=True)
class ExcludedTimes:
    """Nothing changes at certain times of the day (UTC); a span may pass midnight."""

    spans: tuple[tuple[int, int], ...]  # minutes of the day: from, until

    def check(self, suggested: ScalingPlan, context: GuardContext) -> Guarded:
        if suggested.processors == context.current.processors:
            return Guarded(suggested)
        now = datetime.fromtimestamp(context.now_s, tz=UTC)
        minute = now.hour * 60 + now.minute
        for start, end in self.spans:
            inside = start <= minute < end if start < end else minute >= start or minute < end
            if inside:
                return held(context, f"excluded time: {_clock(start)} to {_clock(end)} UTC")
        return Guarded(suggested)


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
