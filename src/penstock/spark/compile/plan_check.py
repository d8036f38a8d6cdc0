"""Whether a plan that was given fits its topology, before anything is built from it."""

from collections import Counter

from penstock.errors import InvalidTopology
from penstock.model.plan import Component, QueryPlan, TopologyPlan
from penstock.model.topology import Topology
from penstock.spark.compile.fused import fused_components, needs_division
from penstock.spark.compile.inspection import Inspection


def check_plan(topology: Topology, inspection: Inspection, plan: TopologyPlan) -> None:
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
            _check_component(topology, inspection, component)


def check_grouping(
    topology: Topology, inspection: Inspection, default: QueryPlan, wanted: QueryPlan
) -> None:
    """Refuse a query that leaves an operator out, or that splits what no shuffle separates.

    `default` are the components of the same query where only shuffles separate them.
    """
    named = {name for c in wanted.components for name in (c.name, *c.operators)}
    for component in default.components:
        for name in component.operators:
            if name not in named:
                raise InvalidTopology(
                    f"plan: query {wanted.name!r} leaves operator {name!r} out; put it into a "
                    "component."
                )
    fused = {part.name for part in fused_components(topology, inspection, wanted.components)}
    together = {name for c in wanted.components if c.name in fused for name in c.operators}
    possible = [frozenset(c.operators) - together for c in default.components]
    for component in wanted.components:
        if component.name not in fused and frozenset(component.operators) not in possible:
            shown = "; ".join(", ".join(c.operators) or "(a source)" for c in default.components)
            raise InvalidTopology(
                f"plan: query {wanted.name!r} groups its operators differently from its "
                f"shuffles, which group them as: {shown}."
            )


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


def _check_component(topology: Topology, inspection: Inspection, component: Component) -> None:
    keyed = [o for o in component.operators if needs_division(topology, inspection, o)]
    for name in keyed:
        analysis = inspection.operators[name]
        declared = topology.find_operator(name).key
        for keys in analysis.keys or ((frozenset(declared),) if declared else ()):
            foreign = sorted(set(component.key) - keys)
            if foreign:
                raise InvalidTopology(
                    f"plan: component {component.name!r}: key {foreign[0]!r} contradicts operator "
                    f"{name!r}, which groups by {', '.join(sorted(keys)) or 'nothing'}."
                )
    if len(keyed) < 2:
        return
    if not component.key:
        raise InvalidTopology(
            f"plan: component {component.name!r} holds {', '.join(keyed)} and has no key; name "
            "columns that all of them group by."
        )
    for name in keyed:
        for join in inspection.operators[name].joins:
            if join.ordered(component.key) is None:
                raise InvalidTopology(
                    f"plan: component {component.name!r}: operator {name!r} joins two streams, "
                    "which Spark divides by exactly the columns that the join sets equal "
                    f"({', '.join(join.left) or 'none'}); let the component have that key, or give "
                    "the operator one of its own."
                )
        if inspection.operators[name].shuffles and not inspection.operators[name].keys:
            raise InvalidTopology(
                f"plan: component {component.name!r}: operator {name!r} shuffles rows by no key; "
                "give it a component of its own."
            )
