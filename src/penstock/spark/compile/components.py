"""Which operators form one component: where no plan says so, and where components run apart."""

from collections.abc import Callable, Iterable

from penstock.model.plan import Component
from penstock.model.topology import Operator, Topology
from penstock.spark.compile.inspection import Inspection

Homes = dict[str, str]  # the component of each operator so far; a source is a home of its own name


def default_components(
    topology: Topology, inspection: Inspection, nodes: frozenset[str]
) -> tuple[Component, ...]:
    """One component for each source and for each operator that needs a shuffle.

    Other operators run in the stages of their first upstream and belong to its component.
    """
    sources = [source.name for source in topology.sources if source.name in nodes]
    operators = [operator for operator in topology.ordered() if operator.name in nodes]

    def begins(operator: Operator, _: Homes) -> bool:
        return inspection.operators[operator.name].shuffles or operator.key is not None

    return _components(inspection, sources, operators, begins)


def apart_components(
    topology: Topology, inspection: Inspection, groups: tuple[Component, ...] = ()
) -> tuple[Component, ...]:
    """A component begins where rows are shuffled, where it is declared, or where streams meet.

    All other operators belong to the component of their upstream, and those of a group to one. So
    components form a graph without cycles but for declared feedback, unless a group closes one.
    """
    sent = {binding.upstream for binding in topology.sinks}  # a source may go to one as it is
    sources = [source.name for source in topology.sources if source.name in sent]

    def begins(operator: Operator, home: Homes) -> bool:
        found = inspection.operators[operator.name]
        if operator.separate or operator.key is not None or found.shuffles:
            return True
        if any(upstream in topology.feedbacks for upstream in operator.upstreams):
            return True
        return len({home.get(upstream, upstream) for upstream in operator.upstreams}) > 1

    return _components(inspection, sources, topology.ordered(), begins, groups)


def _components(
    inspection: Inspection,
    sources: Iterable[str],
    operators: Iterable[Operator],
    begins: Callable[[Operator, Homes], bool],
    groups: tuple[Component, ...] = (),
) -> tuple[Component, ...]:
    group_of = {name: group for group in groups for name in group.operators}
    members: dict[str, list[str]] = {name: [] for name in sources}
    keys: dict[str, tuple[str, ...]] = {}
    home: Homes = {}
    for operator in operators:
        group = group_of.get(operator.name)
        if group is not None:
            name, keys[group.name] = group.name, group.key
        elif begins(operator, home):
            name = operator.name
            analysis = inspection.operators[name]
            inferred = tuple(sorted(analysis.keys[0])) if analysis.keys else ()
            keys[name] = operator.key if operator.key is not None else inferred
        else:
            name = home.get(operator.upstreams[0], operator.upstreams[0])
        home[operator.name] = name
        members.setdefault(name, []).append(operator.name)
    return tuple(Component(name, tuple(ops), keys.get(name, ())) for name, ops in members.items())
