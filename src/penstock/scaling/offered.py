"""What each component would receive if nothing upstream were held up.

A component behind a congested one sees only what that one can serve. The rows it gets for each
row its upstreams served say what it will get once they keep up: the traffic equations with these
ratios, fed by what comes to the first components, give the offered rates (Fu et al. 2017, s. I and
III).
"""

import math
from collections.abc import Mapping, Sequence

from penstock.errors import InvalidInput
from penstock.model.observation import ComponentObservation, Observation
from penstock.scaling.models.traffic import arrival_rates
from penstock.scaling.policies.policy import ScalingContext


def routing_ratios(
    context: ScalingContext, observation: Observation
) -> dict[tuple[str, str], float] | None:
    """Rows that come to a component for each row its upstreams served; None if not measured."""
    measured = {component.name: component for component in observation.components}
    edges = [edge for edge in context.edges if edge[0] in measured and edge[1] in measured]
    upstreams: dict[str, list[str]] = {}
    for upstream, downstream in edges:
        upstreams.setdefault(downstream, []).append(upstream)
    ratios = {}
    for downstream, feeding in upstreams.items():
        served = sum(served_rate_per_s(measured[up], observation.period_s) for up in feeding)
        arrivals = measured[downstream].arrival_rate_per_s
        ratio = arrivals / served if served > 0 else math.nan
        if not math.isfinite(ratio):
            return None
        ratios.update({(up, downstream): ratio for up in feeding})
    return ratios


def offered_rates(context: ScalingContext, observation: Observation) -> dict[str, float]:
    """Arrival rate of each component without blocking; as measured where that cannot be said."""
    rates = {item.name: item.arrival_rate_per_s for item in observation.components}
    ratios = routing_ratios(context, observation)
    if not ratios:
        return rates
    fed = {downstream for _, downstream in ratios}
    first = {name: rate for name, rate in rates.items() if name not in fed}
    if not first or not all(map(math.isfinite, first.values())):
        return rates
    solved = propagated(sorted(rates), first, ratios)
    return {name: max(rates[name], solved.get(name, 0.0)) for name in rates}


def propagated(
    names: Sequence[str], external: Mapping[str, float], ratios: Mapping[tuple[str, str], float]
) -> dict[str, float]:
    """Rates that follow from external ones; these alone where a loop has no steady state."""
    try:
        return arrival_rates(names, external, ratios)
    except InvalidInput:
        return dict(external)  # a loop measured while it filled up


def served_rate_per_s(component: ComponentObservation, period_s: float) -> float:
    """Rows a second it worked through: busy time over service time, or its arrivals."""
    work = component.service_time_s * period_s
    if work > 0 and component.busy_s > 0:
        return component.busy_s / work
    return component.arrival_rate_per_s
