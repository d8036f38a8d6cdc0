"""DS2's true rates with the target capacity of Flink's autoscaler.

DS2 (Kalavri et al., OSDI 2018): an operator's true rate is what it serves per second of useful
work, so one step gives the parallelism that sustains the offered rate at every operator. Flink's
autoscaler asks for more than that:

    target capacity = lag / catch_up + rate x restart / catch_up + rate / utilisation

It scales out when the present capacity is below the target at the highest utilisation (without
restart), and in when it is above the target at the lowest, but then only to the largest need of
the scale-down window, and not while a backlog is being worked off.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from penstock.errors import InvalidInput
from penstock.model.decision import Decision, ScalingPlan
from penstock.scaling.demand import Demands, demands
from penstock.scaling.offered import offered_rates, propagated, routing_ratios
from penstock.scaling.plans import change, hold, separate_plan, shared_plan
from penstock.scaling.policies.options import option
from penstock.scaling.policies.policy import ScalingContext


@dataclass(frozen=True)
class _Need:
    """Processors at full use: for the offered rate, and for the backlog within the catch-up."""

    load: float
    lag_load: float
    lag_s: float  # how long the backlog would take at the offered rate


@dataclass(frozen=True)
class Ds2:
    """True processing rates against a target capacity with head-room and catch-up."""

    looks_ahead: ClassVar[bool] = False

    target_utilisation: float = option(
        0.7, "Utilisation that it plans for.", least=0.01, greatest=1
    )
    utilisation_band: float = option(
        0.3, "How far utilisation may be from the target before it scales.", least=0, greatest=0.99
    )
    catch_up_s: float = option(
        30.0, "Time within which a backlog is to be worked off.", least=0.1, greatest=86_400
    )
    restart_s: float = option(
        5.0, "How long a change stops the processing.", least=0.001, greatest=3600, off=0.0
    )
    scale_down_window_s: float = option(
        60.0, "Scaling in goes no lower than the largest need within this time.",
        least=0.001, greatest=86_400, off=0.0,
    )  # fmt: skip
    max_scale_down_share: float = option(
        0.6, "Largest share of the processors that is removed at once.", least=0, greatest=1
    )

    def __post_init__(self) -> None:
        if not 0 < self.target_utilisation <= 1:
            raise InvalidInput(
                f"target_utilisation is {self.target_utilisation:g}; allowed: above 0, at most 1."
            )
        if not 0 <= self.utilisation_band < self.target_utilisation:
            raise InvalidInput(
                f"utilisation_band is {self.utilisation_band:g}; allowed: at least 0 and below "
                "target_utilisation."
            )
        if not (self.catch_up_s > 0 and self.restart_s >= 0 and self.scale_down_window_s >= 0):
            raise InvalidInput("catch_up_s must be above 0, restart_s and the window at least 0.")

    @property
    def name(self) -> str:
        return "ds2"

    def decide(self, context: ScalingContext) -> Decision[ScalingPlan]:
        """The parallelism that meets the target capacity."""
        found = demands(context)
        if not found.components:
            return hold(context, "no measurement yet")
        needs = self._needs(context, found)
        low = self._lowest(context)
        if context.sharing == "time":
            total = _summed(needs.values())
            before = max(1, context.current.processors)
            floor = sum(low.values()) if found.complete and low else None
            wanted, because = self._wanted(before, total, floor, context.limits.max_latency_s)
            plan = shared_plan(context, wanted)
            line = change("processors", before, plan.processors, because)
            return Decision(plan, (line,), _refusal(context, total.load))
        return self._separate(context, found, needs, low)

    def _separate(
        self,
        context: ScalingContext,
        found: Demands,
        needs: Mapping[str, _Need],
        low: Mapping[str, float],
    ) -> Decision[ScalingPlan]:
        wanted, because, urgency = {}, {}, {}
        for demand in found:
            need = needs[demand.name]
            floor = low.get(demand.name) if found.complete else None
            wanted[demand.name], because[demand.name] = self._wanted(
                demand.parallelism, need, floor, context.limits.max_latency_s
            )
            urgency[demand.name] = (need.load + need.lag_load) / demand.parallelism
        plan = separate_plan(context, wanted, urgency)
        lines = tuple(
            change(d.name, d.parallelism, plan.parallelism[d.name], because[d.name]) for d in found
        )
        return Decision(plan, lines, _refusal(context, sum(n.load for n in needs.values())))

    def _wanted(
        self, before: int, need: _Need, floor: float | None, bound_s: float
    ) -> tuple[int, str]:
        """`floor` is the largest target of the scale-down window; None forbids a scale-in."""
        behind = need.lag_s > bound_s
        most = 1.0 if behind else min(1.0, self.target_utilisation + self.utilisation_band)
        least = self.target_utilisation - self.utilisation_band
        numbers = f"load {need.load:.3g}, catch-up {need.lag_load:.3g}"
        target = self._target(need, self.target_utilisation, restart=True)
        if before < self._target(need, most, restart=False) - 1e-9:
            return max(before, _whole(target)), f"{numbers}: capacity {before} is too little"
        if behind or floor is None or before <= self._target(need, least, restart=True):
            return before, numbers
        smallest = math.ceil(before * (1 - self.max_scale_down_share) - 1e-9)
        after = max(1, smallest, _whole(max(target, floor)))
        return min(before, after), f"{numbers}: capacity {before} is too much"

    def _target(self, need: _Need, utilisation: float, restart: bool) -> float:
        pause = need.load * self.restart_s / self.catch_up_s if restart else 0.0
        return need.lag_load + pause + need.load / utilisation

    def _needs(self, context: ScalingContext, found: Demands) -> dict[str, _Need]:
        """Loads with nothing held up; a backlog also comes to all components behind it."""
        bound_s = context.limits.max_latency_s
        lag = {d.name: d.backlog_rate_per_s * bound_s / self.catch_up_s for d in found}
        rates = {demand.name: demand.arrival_rate_per_s for demand in found}
        if context.sharing == "space":
            observation = context.window[-1]
            rates.update(offered_rates(context, observation))
            ratios = routing_ratios(context, observation)
            if ratios and all(map(math.isfinite, lag.values())):
                lag = propagated(sorted(lag), lag, ratios)
        needs = {}
        for demand in found:
            rate, service = rates[demand.name], demand.service_time_s
            load = rate * service if rate > 0 else 0.0
            lag_load = lag.get(demand.name, 0.0) * service if lag.get(demand.name, 0.0) > 0 else 0.0
            lag_s = demand.backlog_rate_per_s * bound_s / rate if rate > 0 else 0.0
            known = math.isfinite(load) and math.isfinite(lag_load)
            needs[demand.name] = _Need(load, lag_load, lag_s) if known else _Need(0.0, 0.0, 0.0)
        return needs

    def _lowest(self, context: ScalingContext) -> dict[str, float]:
        """The largest target of each component over the scale-down window, once it is full."""
        newest = context.window[-1]
        start_s = newest.at_s - self.scale_down_window_s
        oldest = context.window[0]
        if oldest.at_s - oldest.period_s > start_s + 1e-9:
            return {}
        largest: dict[str, float] = {}
        for end, observation in enumerate(context.window, start=1):
            if observation.at_s > start_s + 1e-9 or end == len(context.window):
                then = replace(context, window=context.window[:end])
                for name, need in self._needs(then, demands(then)).items():
                    target = self._target(need, self.target_utilisation, restart=True)
                    largest[name] = max(largest.get(name, 0.0), target)
        return largest


def _whole(target: float) -> int:
    return math.ceil(min(target, 1e9) - 1e-9)


def _summed(needs: Iterable[_Need]) -> _Need:
    parts = list(needs)
    return _Need(
        sum(need.load for need in parts),
        sum(need.lag_load for need in parts),
        max((need.lag_s for need in parts), default=0.0),
    )


def _refusal(context: ScalingContext, load: float) -> str | None:
    most = context.limits.max_processors
    if load < most:
        return None
    return f"a load of {load:.3g} needs more than the {most} processors allowed"
