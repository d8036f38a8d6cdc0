"""The incremental policy: one processor more above a threshold, one less below another.

The load ratio is input rate over throughput (Kotto-Kombi 2018, ch. 7 s. 1, `incr`): scale out by
one when it exceeds `max_ratio`, in by one when it falls below `min_ratio`. Throughput is
parallelism x service rate: a ratio of input to what was actually processed could never fall below
min.

Differs from Kotto-Kombi 2018, ch. 7 s. 1: throughput is capacity; input over rows processed never
goes low.
Differs from Kotto-Kombi 2018, ch. 7 s. 1: no scale-in that would lift the ratio above max at once.
"""

from dataclasses import dataclass
from typing import ClassVar

from penstock.errors import InvalidInput
from penstock.model.decision import Decision, ScalingPlan
from penstock.scaling.demand import Demands, demands
from penstock.scaling.plans import change, hold, separate_plan, shared_plan
from penstock.scaling.policies.options import option
from penstock.scaling.policies.policy import ScalingContext


@dataclass(frozen=True)
class Incremental:
    """Steps by two thresholds on the load ratio.

    `step` is what can be added or taken at once: a processor, or the processors of one executor.
    """

    looks_ahead: ClassVar[bool] = False

    min_ratio: float = option(
        0.5, "Load over capacity below which it scales in.", least=0, greatest=10
    )
    max_ratio: float = option(
        0.8, "Load over capacity above which it scales out.", least=0, greatest=10
    )
    step: int = option(
        1, "Processors added or removed at once.", least=1, greatest=1024,
        shown="one executor's slots",
    )  # fmt: skip

    def __post_init__(self) -> None:
        if not 0 <= self.min_ratio < self.max_ratio:
            raise InvalidInput(
                f"thresholds are min {self.min_ratio:g} and max {self.max_ratio:g}; they must "
                "satisfy 0 <= min < max."
            )
        if self.step < 1:
            raise InvalidInput(f"step is {self.step}; it must be at least 1.")

    @property
    def name(self) -> str:
        return "incremental"

    def decide(self, context: ScalingContext) -> Decision[ScalingPlan]:
        """One step for all processors (shared in time) or for each component (in space)."""
        found = demands(context)
        if not found.components:
            return hold(context, "no measurement yet")
        if context.sharing == "time":
            return self._shared(context, found)
        return self._separate(context, found)

    def _shared(self, context: ScalingContext, found: Demands) -> Decision[ScalingPlan]:
        before = max(1, context.current.processors)
        after, because = self._step(before, found.load, found.gaps)
        plan = shared_plan(context, after)
        line = change("processors", before, plan.processors, because)
        return Decision(plan, (line,), _overload(found.load, plan.processors, context))

    def _separate(self, context: ScalingContext, found: Demands) -> Decision[ScalingPlan]:
        wanted, because = {}, {}
        for demand in found:
            gaps = tuple(gap for gap in found.gaps if "demand of" not in gap)
            if not demand.known:
                gaps = (*gaps, f"demand of {demand.name}")
            load = demand.load if demand.known else 0.0
            wanted[demand.name], because[demand.name] = self._step(demand.parallelism, load, gaps)
        ratio = {
            demand.name: demand.load / demand.parallelism if demand.known else 0.0
            for demand in found
        }
        plan = separate_plan(context, wanted, ratio)
        lines = tuple(
            change(
                demand.name, demand.parallelism, plan.parallelism[demand.name], because[demand.name]
            )
            for demand in found
        )
        refused = [
            f"{demand.name} needs more than its {plan.parallelism[demand.name]} processors for a "
            f"load of {demand.load:.3g}, and all {context.limits.max_processors} are given out"
            for demand in found
            if plan.parallelism[demand.name] < wanted[demand.name]
            and demand.load >= plan.parallelism[demand.name]
        ]
        return Decision(plan, lines, "; ".join(refused) or None)

    def _step(self, before: int, load: float, gaps: tuple[str, ...]) -> tuple[int, str]:
        ratio = load / before
        if ratio > self.max_ratio:
            return before + self.step, f"load ratio {ratio:.3g} is above {self.max_ratio:g}"
        if gaps:
            return before, f"no scale-in while not measured: {', '.join(gaps)}"
        if ratio >= self.min_ratio or before <= self.step:
            return before, f"load ratio is {ratio:.3g}"
        after = load / (before - self.step)
        if after > self.max_ratio:
            return before, f"load ratio {ratio:.3g} would become {after:.3g}"
        return before - self.step, f"load ratio {ratio:.3g} is below {self.min_ratio:g}"


def _overload(load: float, processors: int, context: ScalingContext) -> str | None:
    if load < processors or processors < context.limits.max_processors:
        return None
    return f"a load of {load:.3g} needs more than the {processors} processors allowed"
