"""What each component would receive if nothing upstream were held up.

A component behind a congested one sees only what that one can serve. The rows it gets for each
row its upstreams served say what it will get once they keep up: the traffic equations with these
ratios, fed by what comes from outside, give the offered rates (Fu et al. 2017, s. I and III).

Where rows are counted edge by edge, each upstream has a ratio of its own, and what a component gets
beyond those comes from outside: so a loop may lead back to the first component. Where they are not,
upstreams share a ratio, and only components without any are fed from outside.
"""

import math
from collections.abc import Mapping, Sequence

from penstock.errors import InvalidInput
from penstock.model.observation import ComponentObservation, Observation
from penstock.scaling.models.traffic import arrival_rates
from penstock.scaling.policies.policy import ScalingContext

Edge = tuple[str, str]


def routing_ratios(context: ScalingContext, observation: Observation) -> dict[Edge, float] | None:
    """Rows that go along each edge for each row its upstream served; None if not measured."""
    measured = {component.name: component for component in observation.components}
    edges = [edge for edge in context.edges if edge[0] in measured and edge[1] in measured]
    served = {
        name: served_rate_per_s(component, observation.period_s)
        for name, component in measured.items()
    }
    sent = _counted(observation, edges) or _inferred(edges, measured, served)
    ratios = {}
    for edge in edges:
        upstream = served[edge[0]]
        nothing = 0.0 if measured[edge[0]].arrival_rate_per_s == 0 else math.nan
        ratio = sent[edge] / upstream if upstream > 0 else nothing
        if not math.isfinite(ratio):
            return None
        ratios[edge] = ratio
    return ratios


def offered_rates(context: ScalingContext, observation: Observation) -> dict[str, float]:
    """Arrival rate of each component without blocking; as measured where that cannot be said."""
    rates = {item.name: item.arrival_rate_per_s for item in observation.components}
    ratios = routing_ratios(context, observation)
    if not ratios:
        return rates
    outside = _from_outside(rates, ratios, _counted(observation, list(ratios)))
    if not outside or not all(map(math.isfinite, outside.values())):
        return rates
    solved = propagated(sorted(rates), outside, ratios)
    return {name: max(rates[name], solved.get(name, 0.0)) for name in rates}


def _counted(observation: Observation, edges: Sequence[Edge]) -> dict[Edge, float]:
    """Rows a second along each edge; nothing unless all of them are counted."""
    flows = observation.flows
    found = dict(zip(flows.edges, flows.rates_per_s, strict=True))
    if not all(math.isfinite(found.get(edge, math.nan)) for edge in edges):
        return {}
    return {edge: found[edge] for edge in edges}


def _inferred(
    edges: Sequence[Edge],
    measured: Mapping[str, ComponentObservation],
    served: Mapping[str, float],
) -> dict[Edge, float]:
    """What arrives, divided among upstreams by what they serve."""
    feeding: dict[str, float] = {}
    for upstream, downstream in edges:
        feeding[downstream] = feeding.get(downstream, 0.0) + served[upstream]
    return {
        (upstream, downstream): measured[downstream].arrival_rate_per_s
        * (served[upstream] / feeding[downstream] if feeding[downstream] > 0 else math.nan)
        for upstream, downstream in edges
    }


def _from_outside(
    rates: Mapping[str, float], ratios: Mapping[Edge, float], counted: Mapping[Edge, float]
) -> dict[str, float]:
    """Rows a second that no component sent."""
    if not counted:
        fed = {downstream for _, downstream in ratios}
        return {name: rate for name, rate in rates.items() if name not in fed}
    outside = dict(rates)
    for (_, downstream), rate in counted.items():
        outside[downstream] -= rate
    return {name: max(0.0, rate) for name, rate in outside.items()}


def propagated(
    names: Sequence[str], external: Mapping[str, float], ratios: Mapping[Edge, float]
) -> dict[str, float]:
    """Rates that follow from external ones; these alone where a loop has no steady state."""
    try:
        return arrival_rates(names, external, ratios)
    except InvalidInput:
        return dict(external)  # a loop measured while it filled up


def served_rate_per_s(component: ComponentObservation, period_s: float) -> float:
    """Rows a second it worked through: counted, or busy time over service time, or arrivals."""
    if component.served_rate_per_s >= 0:
        return component.served_rate_per_s
    work = component.service_time_s * period_s
    if work > 0 and component.busy_s > 0:
        return component.busy_s / work
    return component.arrival_rate_per_s
