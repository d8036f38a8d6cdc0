"""Whether a plan that was given fits its topology, before anything is built from it."""

from collections import Counter

from penstock.errors import InvalidTopology
from penstock.model.plan import Component, QueryPlan, TopologyPlan
from penstock.model.topology import Topology
from penstock.spark.survey import Survey


def check_plan(topology: Topology, found: Survey, plan: TopologyPlan) -> None:
    """Refuse a plan with one sentence that names the query, component or sink."""
    modes = {sink.name: sink.output_mode for sink in topology.sinks}
    named = Counter(sink for query in plan.queries for sink in query.sinks)
    for sink in modes.keys() | named.keys():
        if sink not in modes:
            raise InvalidTopology(f"plan: sink {sink!r} is unknown; known: {', '.join(modes)}.")
        if named[sink] != 1:
            raise InvalidTopology(
                f"plan: sink {sink!r} is in {named[sink]} queries; it must be in exactly one."
            )
    for query in plan.queries:
        for sink in query.sinks:
            if modes[sink] != query.output_mode:
                raise InvalidTopology(
                    f"plan: query {query.name!r} has mode {query.output_mode!r}, but its sink "
                    f"{sink!r} has {modes[sink]!r}; give it a query of that mode."
                )
        _check_members(topology, query)
        for component in query.components:
            _check_component(found, component)


def _check_members(topology: Topology, query: QueryPlan) -> None:
    known = [operator.name for operator in topology.operators]
    named = Counter(name for component in query.components for name in component.operators)
    for name, times in named.items():
        if name not in known:
            raise InvalidTopology(
                f"plan: query {query.name!r}: operator {name!r} is unknown; known: "
                f"{', '.join(known)}."
            )
        if times > 1:
            raise InvalidTopology(
                f"plan: query {query.name!r}: operator {name!r} is in {times} components; it must "
                "be in exactly one."
            )


def _check_component(found: Survey, component: Component) -> None:
    shuffling = [name for name in component.operators if found.operators[name].shuffles]
    if len(shuffling) > 1:
        raise InvalidTopology(
            f"plan: component {component.name!r} holds {', '.join(shuffling)}, which each need a "
            "shuffle; give each its own component."
        )
    for name in shuffling:
        for keys in found.operators[name].keys:
            foreign = sorted(set(component.key) - keys)
            if foreign:
                raise InvalidTopology(
                    f"plan: component {component.name!r}: key {foreign[0]!r} contradicts operator "
                    f"{name!r}, which groups by {', '.join(sorted(keys)) or 'nothing'}."
                )
