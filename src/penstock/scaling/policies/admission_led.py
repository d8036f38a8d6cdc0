"""The policy `admission-led`: processors for the sum of the rates that admission foresees.

Balkesen et al. 2013, s. 3.2. With RF the rates expected of all streams, by forecast and meta-data,
c_op and c_merge what a tuple costs the query and what its result costs the merge, and H the share
of a node that is kept free:

    (sum RF / n_p) c_op = 1 - H           (1a, query nodes n_p)
    (n_p C_op / n_m) c_merge = 1 - H      (1b, merge nodes n_m; C_op is what a full n_p passes on)

Costs are measured. Components that are fed from outside are the query, all others the merge. Where
components share processors in time there is one layer, and 1a holds for the cost of all of them.

Differs from s. 3.2: in 1b n_p is not rounded up, or one query node that is nearly idle would ask
for the merge nodes of a full one; a fall that is only foreseen changes nothing, since its rows are
there until it comes; rows that wait are to be worked off within the bound.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from penstock.model.decision import Decision, ScalingPlan
from penstock.scaling.demand import Demand, Demands, demands, has_rates
from penstock.scaling.offered import offered_rates
from penstock.scaling.plans import change, hold, load_in_words, separate_plan, shared_plan
from penstock.scaling.policies.options import option
from penstock.scaling.policies.policy import ScalingContext


@dataclass(frozen=True)
class AdmissionLed:
    """Eq. 1a and 1b with measured costs; measured arrivals where admission foresees nothing."""

    looks_ahead: ClassVar[bool] = True

    headroom: float = option(
        0.1, "Share of each processor that is kept free (H).", least=0, greatest=0.99
    )

    @property
    def name(self) -> str:
        return "admission-led"

    def decide(self, context: ScalingContext) -> Decision[ScalingPlan]:
        """The fewest processors of which none is busier than 1 - H."""
        found = demands(context)
        if not found.components:
            return hold(context, "no measurement yet")
        rate_per_s, said = _expected(context)
        loads = _loads(context, found, rate_per_s)
        if context.sharing == "time":
            return self._shared(context, found, loads, said)
        return self._separate(context, found, loads, said)

    def _shared(
        self, context: ScalingContext, found: Demands, loads: dict[str, float], said: str
    ) -> Decision[ScalingPlan]:
        before = max(1, context.current.processors)
        load = sum(load for load in loads.values() if math.isfinite(load))
        wanted = _whole(load / (1 - self.headroom))
        if not _known(found, loads):
            wanted = max(before, wanted)
        plan = shared_plan(context, wanted)
        numbers = f"{said}, load {load:.3g}, {self.headroom:.0%} kept free"
        line = change(
            "processors", before, plan.processors, load_in_words(before, wanted), numbers
        )  # fmt: skip
        return Decision(plan, (line,), _refusal(context, wanted, load))

    def _separate(
        self, context: ScalingContext, found: Demands, loads: dict[str, float], said: str
    ) -> Decision[ScalingPlan]:
        merging = {down for up, down in context.edges if up in loads and up != down}
        usable = 1 - self.headroom
        wanted, lines = {}, []
        for demand in found:
            load = loads[demand.name]
            # Query nodes that are full pass on 1 / (1 - H) of what is expected.
            full = load / usable if demand.name in merging else load
            count = _whole(full / usable) if math.isfinite(full) else demand.parallelism
            if not _known(found, loads):
                count = max(count, demand.parallelism)
            wanted[demand.name] = count
        plan = separate_plan(
            context, wanted, {d.name: loads[d.name] / d.parallelism for d in found}
        )
        for demand in found:
            because = load_in_words(demand.parallelism, wanted[demand.name])
            numbers = f"{said}, load {loads[demand.name]:.3g}, {self.headroom:.0%} kept free"
            after = plan.parallelism[demand.name]
            lines.append(change(demand.name, demand.parallelism, after, because, numbers))
        total = sum(load for load in loads.values() if math.isfinite(load))
        return Decision(plan, tuple(lines), _refusal(context, sum(wanted.values()), total))


def _expected(context: ScalingContext) -> tuple[float, str]:
    """Rows a second to plan for, and where that is from."""
    newest = context.window[-1]
    now, ahead = newest.arrival_rate_per_s, newest.foreseen_rate_per_s
    if ahead > now:
        return ahead, f"{ahead:.4g} rows/s foreseen by admission"
    return now, f"{now:.4g} rows/s arriving"


def _loads(context: ScalingContext, found: Demands, rate_per_s: float) -> dict[str, float]:
    """Processors that each component keeps busy at a rate of the sources; NaN where unknown."""
    visits = _visits(context)
    return {one.name: _load(one, rate_per_s * visits.get(one.name, math.nan)) for one in found}


def _load(demand: Demand, ahead_per_s: float) -> float:
    now = demand.arrival_rate_per_s
    rate = (
        ahead_per_s if ahead_per_s > now or math.isnan(now) else now
    ) + demand.backlog_rate_per_s
    return 0.0 if rate == 0 else rate * demand.service_time_s


def _visits(context: ScalingContext) -> dict[str, float]:
    """Rows that come to each component for each row of the sources, as last measured."""
    for seen in reversed(context.window):
        if has_rates(seen):
            rates = {one.name: one.arrival_rate_per_s for one in seen.components}
            if context.sharing == "space":
                rates = offered_rates(context, seen)
            return {name: rate / seen.arrival_rate_per_s for name, rate in rates.items()}
    return {}


def _known(found: Demands, loads: dict[str, float]) -> bool:
    """Whether everything is measured that a scale-in may rest on."""
    return found.complete and all(map(math.isfinite, loads.values()))


def _whole(share: float) -> int:
    return max(1, math.ceil(min(share, 1e9) - 1e-9))


def _refusal(context: ScalingContext, wanted: int, load: float) -> str | None:
    most = context.limits.max_processors
    if wanted <= most:
        return None
    return f"the load needs {wanted} processors, and {most} are allowed (load {load:.3g})"
