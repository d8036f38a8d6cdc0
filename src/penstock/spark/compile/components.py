"""Which operators form one component: where no plan says so, and where components run apart."""

from penstock.model.plan import Component
from penstock.model.topology import Operator, Topology
from penstock.spark.compile.inspection import Inspection


def apart_components(topology: Topology, inspection: Inspection) -> tuple[Component, ...]:
    """A component begins where rows are shuffled, where it is declared, or where streams meet.

    All other operators belong to the component of their upstream. So a component has its inputs at
    its first operator only, and components form a graph without cycles but for declared feedback.
    """
    home: dict[str, str] = {}
    members: dict[str, list[str]] = {}
    keys: dict[str, tuple[str, ...]] = {}
    sent = {binding.upstream for binding in topology.sinks}
    for source in topology.sources:
        if source.name in sent:
            members[source.name] = []  # it goes to a sink as it is
    for operator in topology.ordered():
        if _begins(operator, topology, inspection, home):
            name = operator.name
            analysis = inspection.operators[name]
            inferred = tuple(sorted(analysis.keys[0])) if analysis.keys else ()
            keys[name] = operator.key if operator.key is not None else inferred
        else:
            name = home.get(operator.upstreams[0], operator.upstreams[0])
        home[operator.name] = name
        members.setdefault(name, []).append(operator.name)
    return tuple(Component(name, tuple(ops), keys.get(name, ())) for name, ops in members.items())


def _begins(
    operator: Operator, topology: Topology, inspection: Inspection, home: dict[str, str]
) -> bool:  # fmt: skip
    if (
        operator.separate
        or operator.key is not None
        or inspection.operators[operator.name].shuffles
    ):
        return True
    if any(upstream in topology.feedbacks for upstream in operator.upstreams):
        return True
    # A source is read by whoever needs it, so it is a home of its own name.
    return len({home.get(upstream, upstream) for upstream in operator.upstreams}) > 1


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
