"""Routes that follow from the query: what rows of a source meet by first says how to spread them.

Balkesen et al. 2013, s. 4: rows that are grouped go by their key, and hot keys are split where
their parts can be reduced before they meet; rows of a window that nothing groups go by panes. A key
that is a column of the source is written by lanes; one that an operator computes is looked at
there.
"""

from dataclasses import replace

from penstock.errors import InvalidTopology
from penstock.model.route import AUTO, Route
from penstock.model.topology import Operator, Topology
from penstock.spark.compile.inspection import Inspection, Reading, read_source
from penstock.spark.handles.keyed_steps import KeyedStep

US = 1e6


def with_routes(
    topology: Topology, inspection: Inspection, reading: Reading
) -> tuple[Topology, Inspection]:
    """The topology with the routes that are to be inferred, whose sources are read again."""
    for source in topology.sources:
        if source.route is not None and source.route.after is not None:
            _check_after(topology, inspection, source.name, source.route.after)
    asked = {s.name: s.route for s in topology.sources if s.route and s.route.method == AUTO}
    if not asked:
        return topology, inspection
    routes = {name: _inferred(topology, inspection, name, route) for name, route in asked.items()}
    routed = topology.rerouted(routes)
    session = next(iter(inspection.sources.values())).sparkSession
    again = {
        source.name: read_source(source, routed, session, reading)
        for source in routed.sources
        if source.name in asked
    }
    return routed, replace(inspection, sources=inspection.sources | again)


def _inferred(topology: Topology, inspection: Inspection, source: str, asked: Route) -> Route:
    """By the first operator behind a source at which rows meet."""
    node, kept = source, frozenset(inspection.types[source].fieldNames())
    while True:
        following = [one for one in topology.ordered() if node in one.upstreams]
        steps = [step for one in following if (step := inspection.steps.get(one.name))]
        if steps:
            return _route(_seen_from(inspection, node, steps[0]), asked, node, source, kept)
        one = following[0] if len(following) == 1 else None
        if one is not None and one.key is not None:
            return _route(KeyedStep(one.key, merges=False), asked, node, source, kept)
        if one is None or len(one.upstreams) > 1 or one.cheaper is not None:
            return replace(asked, method="round-robin")
        node, kept = one.name, kept & inspection.kept[one.name]


def _seen_from(inspection: Inspection, node: str, step: KeyedStep) -> KeyedStep:
    """Keys of a step that does not merge are names: those of a join's other side are not here."""
    if step.merges:
        return step
    columns = inspection.types[node].fieldNames()
    return replace(step, keys=tuple(key for key in step.keys if key in columns))


def _route(step: KeyedStep, asked: Route, node: str, source: str, kept: frozenset[str]) -> Route:
    """The route for a step that follows a node; `kept` are the source's columns that reach it."""

    def by(columns: tuple[str, ...], **more: object) -> Route:
        after = None if node == source or kept.issuperset(columns) else node
        return replace(asked, after=after, **more)  # type: ignore[arg-type]

    if step.keys:
        method = "frequency-aware" if step.merges else "consistent"
        return by(step.keys, method=method, key=step.keys)
    if step.time is not None and step.window_us and step.slide_us:
        return by(
            (step.time,), method="rate-aware-panes", time=step.time,
            window=step.window_us / US, slide=step.slide_us / US,
        )  # fmt: skip
    return replace(asked, method="round-robin")


def _check_after(topology: Topology, inspection: Inspection, source: str, name: str) -> None:
    """Refuse an operator whose rows are not this source's, each still on its way to meet others."""
    words = f"source {source!r}: Route(after) is {name!r}"
    known = {operator.name: operator for operator in topology.operators}
    if name not in known:
        raise InvalidTopology(f"{words}; it must be an operator: {', '.join(known) or 'none'}.")
    node: str = name
    while node != source:
        operator: Operator | None = known.get(node)
        if operator is None or len(operator.upstreams) > 1:
            raise InvalidTopology(f"{words}, which has rows of other sources; name one behind it.")
        if inspection.operators[node].shuffles or operator.key is not None:
            raise InvalidTopology(
                f"{words}, but {node!r} shuffles its rows; name an operator before that."
            )
        if operator.cheaper is not None:
            raise InvalidTopology(f"{words}, but {node!r} has a cheaper form; name one before it.")
        node = operator.upstreams[0]
