"""The queries of a topology whose components run apart, ready to start."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import networkx as nx
from pyspark.sql import SparkSession

from penstock.errors import InvalidTopology
from penstock.model.plan import QueryPlan, TopologyPlan
from penstock.model.plan_document import Group
from penstock.model.route import Route
from penstock.model.topology import Topology
from penstock.spark.channels.log import Channel
from penstock.spark.channels.publishing import schema_json
from penstock.spark.compile.apart_split import Part, Splitter
from penstock.spark.compile.builder import BuiltQuery, BuiltTopology, build
from penstock.spark.compile.components import apart_components
from penstock.spark.compile.fused import fused_groups
from penstock.spark.compile.inspection import Inspection, Reading, inspect_topology


@dataclass(frozen=True)
class BuiltApart:
    """The queries, in the order of the parts they carry out."""

    built: BuiltTopology
    parts: tuple[Part, ...]
    channels: dict[str, tuple[str, ...]]  # operator -> components that read it
    edges: tuple[tuple[str, str], ...]
    inspection: Inspection

    def looped(self, part: Part) -> frozenset[str]:
        """The sources of a part that bring back what derives from its own rows."""
        graph = nx.DiGraph(list(self.edges))
        home = {op: one.component.name for one in self.parts for op in one.component.operators}
        own = part.component.name
        return frozenset(
            source
            for source, operator in part.inputs.items()
            if home[operator] == own or nx.has_path(graph, own, home[operator])
        )

    def narrows(self, part: Part) -> bool:
        """Whether the tasks of a part have to be limited where it is written.

        Sources that obey have as many tasks as it has processors already.
        """
        analyses = [self.inspection.operators[name] for name in part.component.operators]
        shuffles = any(one.shuffles for one in analyses) or bool(part.component.key)
        return shuffles or not part.obeys_tasks


def build_apart(
    topology: Topology,
    session: SparkSession,
    reading: Reading,
    place: Callable[[str], Path],
    max_rows: int | None = None,
    wanted: TopologyPlan | tuple[Group, ...] | None = None,
) -> BuiltApart:
    """Check a topology, make its channels and build a query for each component.

    `place` says where the channel of an operator is kept. Operators that `wanted` fuses are one
    component, with one shuffle, and processors of its own like any other.
    """
    inspection = inspect_topology(topology, session, Reading(reading.epoch_s))
    fused = {part.name: part for part in fused_groups(topology, inspection, wanted)}
    components = apart_components(topology, inspection, tuple(fused.values()))
    splitter = Splitter(topology, inspection, components, place, max_rows)
    splitter.check_circles()
    splitter.check_feedback()
    channels = splitter.channels()
    for operator, readers in channels.items():
        channel = Channel.create(place(operator), schema_json(inspection.types[operator]))
        for reader in readers:
            channel.register(reader)
    parts = splitter.parts()
    queries = []
    routes: dict[str, Route] = {}
    repeats: list[str] = []
    for part in parts:
        own = reading
        if reading.controls is not None:
            own = replace(own, controls=replace(reading.controls, component=part.component.name))
        if reading.again is not None:  # by the name that its query has once it is built
            begun = reading.again.get(part.query)
            own = replace(own, again={} if begun is None else {part.topology.name: begun})
        own_group = (Group(part.component.operators, part.component.key),)
        groups = own_group if part.component.name in fused else None
        made = build(part.topology, session, own, groups)
        queries.append(_one_query(part, made))
        repeats += [f"component {part.component.name}: {reason}" for reason in made.repeats]
        routes |= {source.name: source.route for source in made.topology.sources if source.route}
    reasons = tuple(
        f"channel {operator}: {len(readers)} reader(s): {', '.join(readers)}"
        for operator, readers in channels.items()
    )
    reasons += tuple(
        f"loop: {name} brings back what {feedback.operator} emits"
        for name, feedback in topology.feedbacks.items()
    )
    plan = TopologyPlan(tuple(query.plan for query in queries), reasons)
    keys = {part.name: part.key for query in plan.queries for part in query.components}
    routed = topology.rerouted(
        {name: route for name, route in routes.items() if topology.find_source(name)}
    )
    whole = BuiltTopology(
        plan, tuple(queries), inspection.schemas, keys, inspection, routed, repeats=tuple(repeats)
    )
    return BuiltApart(whole, tuple(parts), channels, splitter.edges(), inspection)


def _one_query(part: Part, built: BuiltTopology) -> BuiltQuery:
    if len(built.queries) != 1:
        why = "; ".join(built.plan.reasons)
        raise InvalidTopology(
            f"component {part.component.name!r}: its sinks need {len(built.queries)} queries "
            f"({why}); run the topology together, or give its sinks one output mode."
        )
    query = built.queries[0]
    plan = QueryPlan(
        part.query, (part.component,), query.plan.sinks, query.plan.output_mode
    )  # fmt: skip
    return replace(query, plan=plan)
