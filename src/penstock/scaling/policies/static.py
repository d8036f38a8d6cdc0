"""The static policy: what runs, stays (Kotto-Kombi 2018, ch. 7 s. 1)."""

from dataclasses import dataclass
from typing import ClassVar

from penstock.model.decision import Decision, ScalingPlan
from penstock.scaling.plans import hold
from penstock.scaling.policies.policy import ScalingContext


@dataclass(frozen=True)
class Static:
    """Never changes anything."""

    looks_ahead: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return "static"

    def decide(self, context: ScalingContext) -> Decision[ScalingPlan]:
        """The current plan."""
        return hold(context, "static: the plan is never changed")
