"""Which operators form one component where no plan says so."""

from penstock.model.plan import Component
from penstock.model.topology import Topology
from penstock.spark.compile.inspection import Inspection


def default_components(
    topology: Topology, inspection: Inspection, nodes: frozenset[str]
) -> tuple[Component, ...]:
    """One component for each source and for each operator that needs a shuffle.

    Other operators run in the stages of their first upstream and belong to its component.
    """
    members: dict[str, list[str]] = {s.name: [] for s in topology.sources if s.name in nodes}
    keys: dict[str, tuple[str, ...]] = {}
    home = {name: name for name in members}
    for operator in topology.ordered():
        if operator.name not in nodes:
            continue
        analysis = inspection.operators[operator.name]
        if analysis.shuffles or operator.key is not None:
            home[operator.name] = operator.name
            members[operator.name] = [operator.name]
            inferred = tuple(sorted(analysis.keys[0])) if analysis.keys else ()
            keys[operator.name] = operator.key if operator.key is not None else inferred
        else:
            home[operator.name] = home[operator.upstreams[0]]
            members[home[operator.name]].append(operator.name)
    return tuple(
        Component(name, tuple(operators), keys.get(name, ())) for name, operators in members.items()
    )
