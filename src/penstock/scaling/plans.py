"""Plans from wanted processors: held within the limits, said in one line each."""

import math
from collections.abc import Mapping

from penstock.model.decision import Decision, ScalingPlan
from penstock.scaling.policies.policy import ScalingContext


def hold(
    context: ScalingContext, *reasons: str, infeasible: str | None = None
) -> Decision[ScalingPlan]:
    """Keep what runs."""
    return Decision(context.current, reasons, infeasible)


def shared_plan(context: ScalingContext, processors: int) -> ScalingPlan:
    """All components share all processors in time; held within the limits."""
    limits = context.limits
    count = max(1, limits.min_processors, min(processors, limits.max_processors))
    observed = context.newest.components if context.newest else ()
    names = {*context.current.parallelism, *(component.name for component in observed)}
    return ScalingPlan(dict.fromkeys(sorted(names), count), count)


def separate_plan(
    context: ScalingContext, wanted: Mapping[str, int], urgency: Mapping[str, float]
) -> ScalingPlan:
    """Each component has its own processors; the most urgent are served first when they run out.

    A component is never cut below what it has in favour of another's growth.
    """
    limit = context.limits.max_processors
    if sum(wanted.values()) <= limit and min(wanted.values(), default=1) >= 1:
        return ScalingPlan({name: wanted[name] for name in sorted(wanted)}, sum(wanted.values()))
    running = context.current.parallelism
    given = {name: max(1, min(wanted[name], running.get(name, 1))) for name in sorted(wanted)}
    free = limit - sum(given.values())
    for name in sorted(wanted, key=lambda name: (-_rank(urgency[name]), name)):
        extra = max(0, min(free, wanted[name] - given[name]))
        given[name] += extra
        free -= extra
    return ScalingPlan(given, sum(given.values()))


def _rank(urgency: float) -> float:
    return urgency if math.isfinite(urgency) else -math.inf


def change(what: str, before: int, after: int, because: str, numbers: str = "") -> str:
    """One line: why in plain words, what changes from what to what, and by which numbers.

    >>> change("parser", 2, 3, "too busy", "load 0.95 is above 0.9")
    'too busy: parser 2 -> 3 (load 0.95 is above 0.9)'
    """
    stay = "stay" if what.endswith("s") else "stays"
    step = f"{before} -> {after}" if after != before else f"{stay} at {before}"
    return f"{because}: {what} {step}" + (f" ({numbers})" if numbers else "")


def load_in_words(before: int, wanted: int) -> str:
    """Why another number is wanted, where it is by the load."""
    if wanted == before:
        return "as many as the load needs"
    return "too busy" if wanted > before else "more than the load needs"
