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
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from penstock.errors import InvalidInput
from penstock.model.component_columns import ARRIVALS, BUSY, SERVED, SERVICE
from penstock.model.observation import Floats, Ints, Observation
from penstock.scaling.exploration import upstream_first
from penstock.scaling.models.traffic import arrival_rates
from penstock.scaling.policies.policy import ScalingContext

Edge = tuple[str, str]


def routing_ratios(context: ScalingContext, observation: Observation) -> dict[Edge, float] | None:
    """Rows that go along each edge for each row its upstream served; None if not measured."""
    edges = _edges(observation.columns.names, context.edges)
    ratios = _ratios(edges, observation, _counted(edges, observation))
    return None if ratios is None else dict(zip(edges.named, ratios.tolist(), strict=True))


def offered_rates(context: ScalingContext, observation: Observation) -> dict[str, float]:
    """Arrival rate of each component without blocking; as measured where that cannot be said."""
    columns = observation.columns
    rates = columns.table[ARRIVALS]
    edges = _edges(columns.names, context.edges)
    counted = _counted(edges, observation)
    ratios = _ratios(edges, observation, counted)
    outside = None if ratios is None else _from_outside(edges, rates, counted)
    if ratios is not None and outside is not None and len(ratios):
        rates = np.maximum(rates, _solved(edges, outside, ratios))
    return dict(zip(columns.names, rates.tolist(), strict=True))


def counted_rates(context: ScalingContext, observation: Observation) -> dict[Edge, float]:
    """Rows a second along each edge between components: counted, or as arrivals suggest."""
    edges = _edges(observation.columns.names, context.edges)
    counted = _counted(edges, observation)
    if counted is None:
        ratios = _ratios(edges, observation, None)
        if ratios is None:
            return {}
        counted = ratios * served_rates_per_s(observation)[edges.up]
    return dict(zip(edges.named, counted.tolist(), strict=True))


def propagated(
    names: Sequence[str], external: Mapping[str, float], ratios: Mapping[Edge, float]
) -> dict[str, float]:
    """Rates that follow from external ones; these alone where a loop has no steady state."""
    try:
        return arrival_rates(names, external, ratios)
    except InvalidInput:
        return dict(external)  # a loop measured while it filled up


@dataclass(frozen=True)
class _Edges:
    """The edges between components that were measured, as places among them."""

    names: tuple[str, ...]
    named: tuple[Edge, ...]
    up: Ints
    down: Ints
    downstream_last: tuple[int, ...]  # edges, those of an upstream after all that lead to it
    loops: bool


@lru_cache(maxsize=16)  # a topology is asked every period and hardly ever changes
def _edges(names: tuple[str, ...], edges: tuple[Edge, ...]) -> _Edges:
    place = {name: i for i, name in enumerate(names)}
    named = tuple(dict.fromkeys(e for e in edges if e[0] in place and e[1] in place))
    up = np.array([place[edge[0]] for edge in named], dtype=np.int64)
    down = np.array([place[edge[1]] for edge in named], dtype=np.int64)
    upstreams: list[list[int]] = [[] for _ in names]
    for above, below in zip(up.tolist(), down.tolist(), strict=True):
        upstreams[below].append(above)
    rank = np.zeros(len(names), dtype=np.int64)
    rank[list(upstream_first(tuple(map(tuple, upstreams))))] = np.arange(len(names))
    order = np.argsort(rank[up], kind="stable").tolist() if len(named) else []
    loops = bool((rank[up] >= rank[down]).any()) if len(named) else False
    return _Edges(names, named, up, down, tuple(order), loops)


def _counted(edges: _Edges, observation: Observation) -> Floats | None:
    """Rows a second along each edge; None unless all of them are counted."""
    flows = observation.flows
    if flows.edges == edges.named:
        found = np.array(flows.rates_per_s, dtype=np.float64)
    else:
        rates = dict(zip(flows.edges, flows.rates_per_s, strict=True))
        found = np.array([rates.get(edge, math.nan) for edge in edges.named], dtype=np.float64)
    return found if np.isfinite(found).all() else None


def _ratios(edges: _Edges, observation: Observation, counted: Floats | None) -> Floats | None:
    arrivals = observation.columns.table[ARRIVALS]
    served = served_rates_per_s(observation)[edges.up]
    with np.errstate(divide="ignore", invalid="ignore"):
        if counted is None:  # what arrives, divided among upstreams by what they serve
            feeding = np.bincount(edges.down, served, len(edges.names))[edges.down]
            counted = np.where(feeding > 0, arrivals[edges.down] * served / feeding, np.nan)
        idle = np.where(arrivals[edges.up] == 0, 0.0, np.nan)
        ratios: Floats = np.where(served > 0, counted / served, idle)
    return ratios if np.isfinite(ratios).all() else None


def _from_outside(edges: _Edges, rates: Floats, counted: Floats | None) -> Floats | None:
    """Rows a second that no component sent; None where that cannot be said."""
    if counted is not None:
        outside = np.maximum(0.0, rates - np.bincount(edges.down, counted, len(rates)))
    else:
        fed = np.bincount(edges.down, minlength=len(rates)) > 0
        outside = np.where(fed, 0.0, rates)
        if fed.all():
            return None
    return outside if np.isfinite(outside).all() else None


def _solved(edges: _Edges, outside: Floats, ratios: Floats) -> Floats:
    if edges.loops:
        named = dict(zip(edges.named, ratios.tolist(), strict=True))
        external = dict(zip(edges.names, outside.tolist(), strict=True))
        solved = propagated(edges.names, external, named)
        return np.array([solved[name] for name in edges.names])
    rates, ratio = outside.tolist(), ratios.tolist()
    up, down = edges.up.tolist(), edges.down.tolist()
    for edge in edges.downstream_last:
        rates[down[edge]] += ratio[edge] * rates[up[edge]]
    return np.array(rates)


def served_rates_per_s(observation: Observation) -> Floats:
    """Rows a second worked through: counted, or busy time over service time, or arrivals."""
    table = observation.columns.table
    work = table[SERVICE] * observation.period_s
    with np.errstate(divide="ignore", invalid="ignore"):
        inferred = np.where((work > 0) & (table[BUSY] > 0), table[BUSY] / work, table[ARRIVALS])
    served: Floats = np.where(table[SERVED] >= 0, table[SERVED], inferred)
    return served
