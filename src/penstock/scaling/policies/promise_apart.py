"""The policy `promise` where components have processors of their own.

DRS finds the split of processors that keeps a mean latency (Fu et al. 2017); the promise asks it
for the load's quantile instead of its mean, and for the mean that leaves the share's quantile
within the bound. Latencies are taken for a least one and an exponential beyond it: with mean m and
95th percentile p, as this run has shown them, the share q stays within

    m + (p - m) (-ln(1 - q) - 1) / (-ln 0.05 - 1)
"""

import math
from dataclasses import replace

import numpy as np

from penstock.model.decision import Decision, ScalingPlan
from penstock.scaling.foreseen import foreseen_window
from penstock.scaling.policies.drs import Drs
from penstock.scaling.policies.drs_inputs import read_inputs
from penstock.scaling.policies.policy import ScalingContext
from penstock.scaling.policies.promise_inputs import PromiseInputs
from penstock.scaling.policies.promise_numbers import forecast_numbers

_USUAL_P95 = 2.0  # of the mean, before any results were measured
_TAILS = (1.0, 8.0)


def decide_apart(
    context: ScalingContext, inputs: PromiseInputs, trigger_interval_s: float, step: int
) -> Decision[ScalingPlan]:
    """What DRS would do at the load's quantile, for the mean that keeps the share."""
    tail = _tail(context)
    upper = float(inputs.ahead.upper_per_s(context.limits.share)[: inputs.lead].max())
    limits = replace(context.limits, max_latency_s=context.limits.max_latency_s / tail)
    seen = replace(context, window=foreseen_window(context.window, upper), limits=limits)
    drs = Drs(trigger_interval_s=trigger_interval_s)
    decision = drs.decide(seen)
    expected_s = [
        tail * _mean_s(seen, drs, plan) for plan in (decision.plan, context.current)
    ]  # fmt: skip
    numbers = forecast_numbers(
        context, inputs, decision.plan.processors, (expected_s[0], expected_s[1]), upper, step
    )
    share = f"{context.limits.share * 100:g}%"
    line = (
        f"expects {share} of results within {_seconds(expected_s[0])}"
        f"{_without(context, decision.plan, expected_s[1])}; planned for at most {upper:.4g} "
        f"rows/s, which {share} of loads stay below until new processors serve, and for a mean of "
        f"{limits.max_latency_s:.3g} s, as that share takes {tail:.2g} times the mean"
    )
    return replace(decision, reasons=(*decision.reasons, line), numbers=numbers)


def _without(context: ScalingContext, plan: ScalingPlan, latency_s: float) -> str:
    same = plan.parallelism == context.current.parallelism
    return "" if same else f", {_seconds(latency_s)} without the change"


def _mean_s(context: ScalingContext, drs: Drs, plan: ScalingPlan) -> float:
    """The mean latency that DRS expects of a split; NaN while a load is not known."""
    inputs = read_inputs(
        context, drs.model, drs.smoothing, drs.overhead, drs.trigger_interval_s, drs.correct
    )
    if inputs is None:
        return math.nan
    own = [max(1, plan.parallelism.get(name, 1)) for name in inputs.network.names]
    return inputs.correction.corrected_s(inputs.model.latency_s(inputs.network, np.array(own)))


def _tail(context: ScalingContext) -> float:
    """Latency of the share over the mean."""
    ratios = [
        one.latency.p95_s / one.latency.mean_s
        for one in context.window[-60:]
        if one.latency is not None and one.latency.count > 0 and one.latency.mean_s > 0
    ]
    p95 = float(np.median(ratios)) if ratios else _USUAL_P95
    beyond = (-math.log(1 - context.limits.share) - 1) / (-math.log(0.05) - 1)
    return min(max(1 + (p95 - 1) * beyond, _TAILS[0]), _TAILS[1])


def _seconds(value: float) -> str:
    return "an unknown time" if math.isnan(value) else f"{value:.3g} s"
