"""The policy `promise` where components have processors of their own.

DRS finds the split of processors that keeps a mean latency (Fu et al. 2017); the promise asks it
for the load's quantile instead of its mean, and for the mean that leaves the share's quantile
within the bound: as far below it as the slow results of this run are above their mean.
"""

from dataclasses import replace

import numpy as np

from penstock.model.decision import Decision, ScalingPlan
from penstock.scaling.foreseen import foreseen_window
from penstock.scaling.policies.drs import Drs
from penstock.scaling.policies.policy import ScalingContext
from penstock.scaling.policies.promise_inputs import PromiseInputs

_USUAL_TAIL = 2.0  # slow results over the mean, before any were measured
_TAILS = (1.2, 4.0)


def decide_apart(
    context: ScalingContext, inputs: PromiseInputs, trigger_interval_s: float
) -> Decision[ScalingPlan]:
    """What DRS would do at the load's quantile, for the mean that keeps the share."""
    tail = _tail(context)
    upper = float(inputs.ahead.upper_per_s(context.limits.share)[: inputs.lead].max())
    limits = replace(context.limits, max_latency_s=context.limits.max_latency_s / tail)
    seen = replace(context, window=foreseen_window(context.window, upper), limits=limits)
    decision = Drs(trigger_interval_s=trigger_interval_s).decide(seen)
    share = f"{context.limits.share * 100:g}%"
    line = (
        f"planned for at most {upper:.4g} rows/s, which {share} of loads stay below until new "
        f"processors serve, and for a mean of {limits.max_latency_s:.3g} s, as slow results take "
        f"{tail:.2g} times the mean"
    )
    return replace(decision, reasons=(*decision.reasons, line))


def _tail(context: ScalingContext) -> float:
    ratios = [
        one.latency.p95_s / one.latency.mean_s
        for one in context.window[-60:]
        if one.latency is not None and one.latency.count > 0 and one.latency.mean_s > 0
    ]
    usual = float(np.median(ratios)) if ratios else _USUAL_TAIL
    return min(max(usual, _TAILS[0]), _TAILS[1])
