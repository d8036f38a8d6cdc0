"""DRS: the fewest processors that keep the bound, or the best use of a fixed number.

Fu et al. 2017.

Three things make it act (s.IV-B), none of them sooner than T_ra after the last change:
  shortage    the latency is above T_max (or the model sees it coming): MinProcessors
  surplus     the measured latency is below T_min: MinProcessors, if that is fewer
  imbalance   the number is right, its split is not the best: AssignProcessors
"""

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

from penstock.errors import InvalidInput
from penstock.model.batch_overhead import BatchOverhead
from penstock.model.decision import Decision, ScalingPlan
from penstock.scaling.models.network import Allocation
from penstock.scaling.plans import change, hold
from penstock.scaling.policies.drs_inputs import Inputs, read_inputs
from penstock.scaling.policies.options import option
from penstock.scaling.policies.policy import ScalingContext
from penstock.scaling.smoothing import Smoothing

MODELS = ("auto", "mmk", "gigk", "microbatch", "hops")
OBJECTIVES = ("latency", "processors")
_LEAST_GAIN = 0.01  # of the latency; a smaller one does not pay for moving processors
_NEAR_BEST = 1.4  # times the best latency that can be had
_FAR_OFF = 2.0  # times the latency of the newest period: the model does not know what it is
_MOST_LOW = 0.75  # of the bound; nearer to it nothing is a surplus


@dataclass(frozen=True)
class Drs:
    """The scheduler of Fu et al. 2017 over a latency model.

    `model`: "auto" takes microbatch where processors are shared in time; in space, hops where
    components work in batches, and mmk where they take row by row.
    `objective`: "latency" solves (8), "processors" solves (6) with all that are allowed.
    `min_latency_share`: T_min over T_max. `reallocate_after_s`: T_ra.
    """

    looks_ahead: ClassVar[bool] = False

    model: str = option(
        "auto",
        "Latency model; auto takes microbatch where components share processors in time; where "
        "each has its own, hops if they work in batches, as on Spark, and mmk if not.",
        choices=MODELS,
    )
    objective: str = option(
        "latency",
        "Fewest processors that keep the bound (latency), or the lowest latency of all that are "
        "allowed (processors).",
        choices=OBJECTIVES,
    )
    min_latency_share: float = option(
        0.45, "Share of the bound below which a measured latency means too many processors.",
        least=0, greatest=0.999,
    )  # fmt: skip
    reallocate_after_s: float = option(
        0.0, "How long after a change it changes nothing.", least=0.001, greatest=86_400, off=0.0
    )
    smoothing_window: int = option(
        3, "Periods over which measurements are averaged.", least=1, greatest=1000
    )
    smoothing_alpha: float | None = option(
        None, "Weight of the past in an exponential mean, instead of smoothing_window.",
        least=0, greatest=0.999, off=None,
    )  # fmt: skip
    predictive: bool = option(
        True, "Scale out as soon as the model expects the bound to be missed."
    )
    correct: bool = option(True, "Correct the model by the latency that was measured.")
    batch_overhead_s: float = option(
        0.25, "Fixed cost of a batch, until some were measured.",
        least=0.001, greatest=3600, off=0.0,
    )  # fmt: skip
    batch_overhead_per_processor_s: float = option(
        0.0, "What each processor adds to that cost, until it was measured.",
        least=0.001, greatest=3600, off=0.0,
    )  # fmt: skip
    trigger_interval_s: float = option(
        0.0, "Time from the start of one batch to the start of the next, for the model.",
        least=0.001, greatest=3600, off=0.0, shown="batch-interval",
    )  # fmt: skip
    smoothing: Smoothing = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise InvalidInput(f"drs model is {self.model!r}; known: {', '.join(MODELS)}.")
        if self.objective not in OBJECTIVES:
            known = ", ".join(OBJECTIVES)
            raise InvalidInput(f"drs objective is {self.objective!r}; known: {known}.")
        if not 0 <= self.min_latency_share < 1:
            raise InvalidInput(
                f"min_latency_share is {self.min_latency_share:g}; allowed: 0 <= share < 1."
            )
        smoothing = Smoothing(self.smoothing_window, self.smoothing_alpha)
        object.__setattr__(self, "smoothing", smoothing)

    @property
    def name(self) -> str:
        return "drs"

    @property
    def overhead(self) -> BatchOverhead:
        """What a batch is thought to cost before any was seen."""
        return BatchOverhead(self.batch_overhead_s, self.batch_overhead_per_processor_s)

    def decide(self, context: ScalingContext) -> Decision[ScalingPlan]:
        """The plan of whichever trigger holds, or what runs."""
        if self.reallocate_after_s > 0 and context.in_force_s < self.reallocate_after_s:
            waited = f"{context.in_force_s:.3g} of {self.reallocate_after_s:g} s"
            return hold(context, f"no change yet: the last one is {waited} ago")
        inputs = read_inputs(
            context, self.model, self.smoothing, self.overhead, self.trigger_interval_s,
            self.correct,
        )  # fmt: skip
        if inputs is None:
            return hold(context, "no change: a component's load was not measured")
        if self.objective == "processors":
            return self._best_split(context, inputs)
        return self._keep_bound(context, inputs)

    def _best_split(self, context: ScalingContext, inputs: Inputs) -> Decision[ScalingPlan]:
        # (6) asks for the best steady state; a backlog is gone the sooner the better that is.
        found = inputs.model.assign(inputs.steady, context.limits.max_processors)
        why = f"the best split of at most {context.limits.max_processors} processors"
        return self._decided(context, inputs, found, why)

    def _keep_bound(self, context: ScalingContext, inputs: Inputs) -> Decision[ScalingPlan]:
        bound = context.limits.max_latency_s
        expected = inputs.expected_s
        above = inputs.measured_s > bound
        if not above and expected > bound and _refuted(inputs, bound):
            seen, thought = _seconds(inputs.newest_s), _seconds(expected)
            line = f"latency {seen} is within the bound, though {inputs.model.name} says {thought}"
            return hold(context, f"results are in time ({line}: the measurement counts)")
        if above or (self.predictive and expected > bound):
            return self._add(context, inputs, above)
        if inputs.measured_s < self._low_s(context, inputs):
            return self._remove(context, inputs)
        if context.sharing == "space":
            return self._rebalance(context, inputs)
        return hold(context, f"results are in time (latency {_seconds(inputs.measured_s)})")

    def _low_s(self, context: ScalingContext, inputs: Inputs) -> float:
        """T_min.

        Differs from Fu et al. 2017, s. IV-B: a batch takes its time on any number of processors, so
        where they are shared in time T_min is not below what is about the best that can be had.
        """
        bound = context.limits.max_latency_s
        low_s = self.min_latency_share * bound
        if context.sharing != "time":
            return low_s
        best = inputs.model.assign(inputs.steady, context.limits.max_processors)
        floor_s = _NEAR_BEST * inputs.correction.corrected_s(best.latency_s)
        return max(low_s, min(floor_s, _MOST_LOW * bound))

    def _add(self, context: ScalingContext, inputs: Inputs, above: bool) -> Decision[ScalingPlan]:
        limits, current = context.limits, context.current.processors
        found = inputs.model.minimum(inputs.network, inputs.bound_s, limits.max_processors)
        if math.isinf(found.latency_s):
            # Not even all of them work the backlog off in time: the best steady state does it
            # soonest without starving a component that keeps up.
            steady = inputs.model.assign(inputs.steady, limits.max_processors)
            found = replace(steady, infeasible=found.infeasible)
        elif found.infeasible:
            found = replace(found, infeasible=_infeasible(context, inputs, found))
        seen = inputs.measured_s if above else inputs.expected_s
        late = f"{'measured' if above else 'expected'} {_seconds(seen)} is above the bound of "
        late += f"{limits.max_latency_s:g} s for the mean"
        why = f"results {'take' if above else 'would take'} too long ({late})"
        if math.isinf(seen):
            why = "more comes than is worked off"
        if found.processors > current or found.infeasible:
            return self._decided(context, inputs, found, why)
        if above and current < limits.max_processors:
            # The model sees enough where the measurement does not: go on in single steps.
            one_more = inputs.model.assign(inputs.network, current + 1)
            if one_more.processors > current:
                return self._decided(context, inputs, one_more, why)
        if current >= limits.max_processors:
            return hold(context, f"{why}, and all {current} processors allowed are in use")
        return hold(context, f"{why}, but {inputs.model.name} sees no gain in more processors")

    def _remove(self, context: ScalingContext, inputs: Inputs) -> Decision[ScalingPlan]:
        limits = context.limits
        found = inputs.model.minimum(inputs.network, inputs.bound_s, limits.max_processors)
        if found.infeasible is None and found.processors < limits.min_processors:
            found = inputs.model.assign(inputs.network, limits.min_processors)
        if found.infeasible or found.processors >= context.current.processors:
            return hold(context, f"fewer would not do (latency {_seconds(inputs.measured_s)})")
        low = f"fewer are enough (measured {_seconds(inputs.measured_s)} is below T_min)"
        return self._decided(context, inputs, found, low)

    def _rebalance(self, context: ScalingContext, inputs: Inputs) -> Decision[ScalingPlan]:
        found = inputs.model.assign(inputs.network, context.current.processors)
        best = inputs.correction.corrected_s(found.latency_s)
        # A gain below what the model is off by is none: the split would change to and fro.
        error_s = 0.0 if math.isnan(inputs.correction.error_s) else inputs.correction.error_s
        least_gain_s = max(_LEAST_GAIN * inputs.expected_s, error_s)
        if found.infeasible or best > inputs.expected_s - least_gain_s:
            return hold(context, f"results are in time (latency {_seconds(inputs.measured_s)})")
        why = f"a better split ({_seconds(inputs.expected_s)} -> {_seconds(best)} expected)"
        return self._decided(context, inputs, found, why)

    def _decided(
        self, context: ScalingContext, inputs: Inputs, found: Allocation, why: str
    ) -> Decision[ScalingPlan]:
        if inputs.gaps and found.processors < context.current.processors:
            line = f"no scale-in while something is not measured ({', '.join(inputs.gaps)})"
            return hold(context, line, infeasible=found.infeasible)
        plan = ScalingPlan(dict(found.named(inputs.network)), found.processors)
        lines = [change("processors", context.current.processors, plan.processors, why)]
        if context.sharing == "space":
            running = context.current.parallelism
            lines += [
                f"{name} {running.get(name, 0)} -> {count}"
                for name, count in plan.parallelism.items()
                if running.get(name, 0) != count
            ]
        expected = inputs.correction.corrected_s(found.latency_s)
        lines.append(f"{_seconds(expected)} expected ({inputs.model.name}, {inputs.correction})")
        return Decision(plan, tuple(lines), found.infeasible)


def _refuted(inputs: Inputs, bound_s: float) -> bool:
    """Whether the newest period shows that what runs keeps the bound, whatever the model says.

    Only while nothing is behind and no rise is foreseen: else the model sees a latency to come.
    """
    kept = inputs.newest_s <= bound_s and not inputs.behind and not inputs.foreseen
    return kept and inputs.expected_s > _FAR_OFF * inputs.newest_s


def _infeasible(context: ScalingContext, inputs: Inputs, found: Allocation) -> str | None:
    """Why the bound cannot be met, in numbers that agree with what is measured."""
    bound_s = f"a mean latency of {context.limits.max_latency_s:g} s cannot be met"
    best_s = inputs.correction.corrected_s(found.latency_s)
    if inputs.measured_s < best_s:  # so that is not the best
        return (
            f"{bound_s}: {_seconds(inputs.measured_s)} is measured with "
            f"{context.current.processors} processors, and {inputs.model.name} knows no better "
            f"number up to {context.limits.max_processors}"
        )
    if not inputs.correction.pairs:
        return found.infeasible
    return f"{bound_s}: the best is {_seconds(best_s)} with {found.processors} processors"


def _seconds(value: float) -> str:
    if math.isinf(value):
        return "no end of waiting"
    return "unknown" if math.isnan(value) else f"{value:.3g} s"
