"""The incremental strategy as Kotto-Kombi 2018, ch. 7 s. 1 and s. 4.2.1 words it.

One task more as long as the workload, what comes and what is pending, exceeds what is processed;
one less when it falls below a share of it. What is processed is hardly ever more than what came, so
it seldom gives a task back; the registered policy `incremental` compares with capacity instead.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from penstock.model.decision import Decision, ScalingPlan
from penstock.scaling.offered import served_rates_per_s
from penstock.scaling.plans import hold, separate_plan
from penstock.scaling.policies.policy import ScalingContext

MIN_RATIO, MAX_RATIO = 0.8, 1.05  # of the workload to what was processed


@dataclass(frozen=True)
class LiteralIncremental:
    """Steps of one task by input and pending elements over processed ones."""

    looks_ahead: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return "literal incremental"

    def decide(self, context: ScalingContext) -> Decision[ScalingPlan]:
        """One step for each operator."""
        newest = context.newest
        if newest is None:
            return hold(context, "no measurement yet")
        processed = served_rates_per_s(newest) * newest.period_s
        wanted, ratios = {}, {}
        for one, done in zip(newest.components, processed.tolist(), strict=True):
            work = one.arrival_rate_per_s * newest.period_s + one.backlog_rows
            ratio = work / done if done > 0 else (np.inf if work > 0 else 1.0)
            running = context.current.parallelism[one.name]
            step = int(ratio > MAX_RATIO) - int(ratio < MIN_RATIO)
            wanted[one.name], ratios[one.name] = max(1, running + step), float(ratio)
        return Decision(separate_plan(context, wanted, ratios), ("by input over processed",))
