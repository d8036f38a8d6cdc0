"""The reinforcement-learning policy: input rates to degrees, from a knowledge base.

Kotto-Kombi 2018, ch. 7.

The base is trained beforehand on representative load (`Knowledge.learnt`) and refined by the
window's own periods. As in the experiments of ch.7 s.4 the rate is the mean over recent history,
so brief peaks hardly show, and rows that wait do not count.
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar

from penstock.model.decision import Decision, ScalingPlan
from penstock.scaling.demand import demands, gaps_of
from penstock.scaling.plans import change, hold, separate_plan, shared_plan
from penstock.scaling.policies.knowledge import WHOLE, Knowledge, samples_of
from penstock.scaling.policies.options import option
from penstock.scaling.policies.policy import ScalingContext


@dataclass(frozen=True)
class Rlearn:
    """Looks up the most valued degree for the recent mean rate."""

    looks_ahead: ClassVar[bool] = False

    knowledge: Knowledge = field(default_factory=Knowledge)
    window_s: float = option(
        60.0, "How far back the input rate is averaged.", least=0.1, greatest=86_400
    )
    refine: bool = option(True, "Go on learning from the periods of the run itself.")

    @property
    def name(self) -> str:
        return "rlearn"

    def decide(self, context: ScalingContext) -> Decision[ScalingPlan]:
        """The learnt degree; what runs where nothing was learnt."""
        newest = context.newest
        if newest is None:
            return hold(context, "no measurement yet")
        knowledge = self.knowledge
        shared = context.sharing == "time"
        if self.refine:
            lived = samples_of(context.window, context.limits.max_latency_s, shared)
            knowledge = knowledge.learnt(lived)
        complete = not gaps_of(newest)
        if shared:
            rate = self._mean_rate(context, WHOLE)
            before = max(1, context.current.processors)
            wanted, because = _looked_up(knowledge, WHOLE, rate, before, complete)
            plan = shared_plan(context, wanted)
            line = change("processors", before, plan.processors, because)
            return Decision(plan, (line,), _refusal(context, wanted))
        return self._separate(context, knowledge, complete)

    def _separate(
        self, context: ScalingContext, knowledge: Knowledge, complete: bool
    ) -> Decision[ScalingPlan]:
        wanted, because, rates = {}, {}, {}
        before = {demand.name: demand.parallelism for demand in demands(context)}
        for name, running in before.items():
            rates[name] = self._mean_rate(context, name)
            wanted[name], because[name] = _looked_up(
                knowledge, name, rates[name], running, complete
            )
        plan = separate_plan(context, wanted, rates)
        lines = tuple(
            change(name, running, plan.parallelism[name], because[name])
            for name, running in before.items()
        )
        return Decision(plan, lines, _refusal(context, sum(wanted.values())))

    def _mean_rate(self, context: ScalingContext, name: str) -> float:
        newest = context.window[-1]
        rates = []
        for observation in context.window:
            if observation.at_s <= newest.at_s - self.window_s + 1e-9:
                continue
            if name == WHOLE:
                rates.append(observation.arrival_rate_per_s)
            rates += [c.arrival_rate_per_s for c in observation.components if c.name == name]
        known = [rate for rate in rates if math.isfinite(rate)]
        complete = rates and math.isfinite(rates[-1])
        return sum(known) / len(known) if known and complete else math.nan


def _looked_up(
    knowledge: Knowledge, name: str, rate_per_s: float, before: int, complete: bool
) -> tuple[int, str]:
    if not math.isfinite(rate_per_s):
        return before, "its rate was not measured"
    found = knowledge.best_degree(name, rate_per_s)
    if found is None:
        return before, f"nothing learnt about {rate_per_s:.4g} rows/s"
    if found < before and not complete:
        return before, "no scale-in: not all was measured"
    return found, f"learnt for {rate_per_s:.4g} rows/s"


def _refusal(context: ScalingContext, wanted: int) -> str | None:
    most = context.limits.max_processors
    if wanted <= most:
        return None
    return f"{wanted} processors were learnt to be needed, {most} are allowed"
