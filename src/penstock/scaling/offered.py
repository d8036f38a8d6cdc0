"""What each component would receive if nothing upstream were held up.

A component behind a congested one sees only what that one can serve. The rows it gets for each
row its upstreams served say what it will get once they keep up: the traffic equations with these
ratios, fed by what comes to the first components, give the offered rates (seed 003 s.I and III).
"""

import math

from penstock.errors import InvalidInput
from penstock.model.observation import ComponentObservation, Observation
from penstock.scaling.policy import ScalingContext
from penstock.scaling.traffic import arrival_rates


def offered_rates(context: ScalingContext, observation: Observation) -> dict[str, float]:
    """Arrival rate of each component without blocking; as measured where that cannot be said."""
    measured = {component.name: component for component in observation.components}
    rates = {name: component.arrival_rate_per_s for name, component in measured.items()}
    edges = [edge for edge in context.edges if edge[0] in measured and edge[1] in measured]
    ratios = {}
    fed = {downstream for _, downstream in edges}
    for downstream in fed:
        upstreams = [up for up, down in edges if down == downstream]
        served = sum(served_rate_per_s(measured[up], observation.period_s) for up in upstreams)
        ratio = rates[downstream] / served if served > 0 else math.nan
        if not math.isfinite(ratio):
            return rates
        ratios.update({(up, downstream): ratio for up in upstreams})
    first = {name: rate for name, rate in rates.items() if name not in fed}
    looped = all(name in fed for name in rates)
    if not ratios or looped or not all(map(math.isfinite, first.values())):
        return rates
    try:
        solved = arrival_rates(sorted(rates), first, ratios)
    except InvalidInput:
        return rates  # a loop measured while it filled up: no steady state to speak of
    return {name: max(rates[name], rate) for name, rate in solved.items()}


def served_rate_per_s(component: ComponentObservation, period_s: float) -> float:
    """Rows a second it worked through: busy time over service time, or its arrivals."""
    work = component.service_time_s * period_s
    if work > 0 and component.busy_s > 0:
        return component.busy_s / work
    return component.arrival_rate_per_s
