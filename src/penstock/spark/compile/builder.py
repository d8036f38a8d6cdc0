"""From a topology to the streaming queries that carry it out.

Sinks of one output mode share one query: the rows for them are tagged, united and handed to all
sinks of a batch at once. Where Spark refuses that, each sink gets its own query, and the plan says
why.
"""

import logging
from dataclasses import dataclass, replace

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StructType

from penstock.errors import InvalidTopology
from penstock.model.plan import Component, Orders, QueryPlan, TopologyPlan
from penstock.model.plan_document import Group
from penstock.model.sinks import Files
from penstock.model.topology import SinkBinding, Topology
from penstock.spark.compile.assembler import Assembler, Division, Sharing, plan_sharing
from penstock.spark.compile.cheaper_forms import on_the_way
from penstock.spark.compile.fused import (
    Fused,
    divisions,
    fused_components,
    grouped,
    relaxed,
    unplanned,
)
from penstock.spark.compile.inspection import Survey, survey
from penstock.spark.compile.plan_check import check_plan
from penstock.spark.compile.reordering import fitting_orders, reordered, same_rows
from penstock.spark.handles import planned_execution, streaming_refusal
from penstock.spark.handles.messages import first_line
from penstock.spark.handles.physical_plan import OURS, Shape, shape_of
from penstock.spark.sinks.tagging import TAG, tagged
from penstock.spark.sources.control import Controls

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reading:
    """How sources are read: when their streams began, and whether rows are counted at edges.

    `controls` are the channels by which the driver orders things of its sources.
    """

    epoch_s: float
    measured: bool = True
    controls: Controls | None = None
    reuse: bool = False  # what was read to look at the operators is what runs; for one query
    at_once: bool = False  # what sources have at first is all that is read


@dataclass(frozen=True)
class BuiltQuery:
    """One streaming query, ready to start."""

    plan: QueryPlan
    frame: DataFrame
    sinks: tuple[SinkBinding, ...]
    edges: dict[str, tuple[str, ...]]  # operator -> its upstreams, sources included
    sharing: Sharing
    fused: tuple[Fused, ...] = ()
    shape: Shape | None = None  # of a fused query: what its batches must be planned as
    row_by_row: bool = False  # of a fused query: whether rows are merged with state one by one
    stateful: bool = False

    @property
    def tagged(self) -> bool:
        """Whether the rows of several nodes come in one frame."""
        return len({sink.upstream for sink in self.sinks}) > 1

    def part_schema(self, sink: SinkBinding) -> StructType:
        """Of the rows of one sink."""
        if not self.tagged:
            return self.frame.schema
        kind = self.frame.schema[sink.upstream].dataType
        assert isinstance(kind, StructType)
        return kind

    def part(self, batch: DataFrame, sink: SinkBinding) -> DataFrame:
        """The rows of one sink in a batch of this query."""
        if not self.tagged:
            return batch
        return batch.where(F.col(TAG) == sink.upstream).select(f"`{sink.upstream}`.*")


@dataclass(frozen=True)
class BuiltTopology:
    """All queries of a topology, and what must not change from run to run."""

    plan: TopologyPlan
    queries: tuple[BuiltQuery, ...]
    schemas: dict[str, str]
    keys: dict[str, tuple[str, ...]]  # of each operator that needs a shuffle, whatever the plan
    survey: Survey
    topology: Topology  # as it runs: declared, but for the order of stateless operators
    orders: Orders = ()  # of runs that are carried out in another order than declared
    notes: tuple[str, ...] = ()  # on orders that were wanted


def build(
    topology: Topology, session: SparkSession, reading: Reading,
    wanted: TopologyPlan | tuple[Group, ...] | None = None, orders: Orders = (),
) -> BuiltTopology:  # fmt: skip
    """Check a topology against Spark and build its queries; nothing is started.

    A plan that is given says which sinks share a query and which operators a component; without
    one, sinks of one output mode share a query and every shuffle begins a component. Runs of
    stateless operators are put into these orders as far as they allow it.
    """
    for name, feedback in topology.feedbacks.items():
        raise InvalidTopology(
            f"feedback {name!r} closes a loop from operator {feedback.operator!r}; a topology with "
            "a loop runs apart only (--apart, or run(apart=True))."
        )
    found = survey(
        topology, session, reading.epoch_s, reading.controls, reading.at_once
    )  # fmt: skip
    if not orders:
        return _built(topology, session, reading, found, wanted)
    schemas = found.schemas
    topology, found, taken, notes = _in_order(topology, session, reading, found, orders)
    built = _built(topology, session, reading, found, wanted)
    return replace(built, schemas=schemas, orders=taken, notes=notes)


def _in_order(
    topology: Topology, session: SparkSession, reading: Reading, found: Survey, wanted: Orders
) -> tuple[Topology, Survey, Orders, tuple[str, ...]]:
    """The topology as it is to run, if its rows stay what they are; else as it was declared."""
    orders, reasons = fitting_orders(topology, found, wanted)
    if not orders:
        return topology, found, (), reasons
    try:
        made = reordered(topology, found, orders)
        again = survey(made, session, reading.epoch_s, read=found.sources)
        ends = zip(topology.sinks, made.sinks, strict=True)
        refused = next(
            (f"sink {now.name!r} would get other columns" for then, now in ends
             if not same_rows(found.types[then.upstream], again.types[now.upstream])), None
        )  # fmt: skip
    except InvalidTopology as error:
        refused = str(error)
    if refused is None:
        told = tuple(f"order {' > '.join(order)}, not as declared" for order in orders)
        return made, again, orders, (*reasons, *told)
    log.warning("stateless operators keep their order: %s", refused)
    return topology, found, (), (*reasons, f"order kept as declared: {refused}")


def _built(
    topology: Topology, session: SparkSession, reading: Reading, found: Survey,
    wanted: TopologyPlan | tuple[Group, ...] | None,
) -> BuiltTopology:  # fmt: skip
    keys = _keys(topology, found)
    if isinstance(wanted, tuple) and wanted:
        plain = _built(topology, session, reading, found, None).plan
        wanted = grouped(topology, found, plain, wanted)
    if isinstance(wanted, TopologyPlan):
        check_plan(topology, found, wanted)
        given = tuple(_as_planned(topology, session, reading, found, q) for q in wanted.queries)
        return BuiltTopology(wanted, given, found.schemas, keys, found, topology)
    queries, reasons = _by_mode(topology, session, reading, found)
    ways = on_the_way(topology)
    reasons += [
        f"{node} runs {query.sharing.copies[node]} times per batch: "
        f"{_why_repeated(node, found, ways)}"
        for query in queries
        for node in query.sharing.repeated
    ]
    plan = TopologyPlan(tuple(query.plan for query in queries), tuple(dict.fromkeys(reasons)))
    return BuiltTopology(plan, tuple(queries), found.schemas, keys, found, topology)


def _by_mode(
    topology: Topology, session: SparkSession, reading: Reading, found: Survey
) -> tuple[list[BuiltQuery], list[str]]:
    """As few queries as Spark allows, and why there is more than one."""
    modes = list(dict.fromkeys(sink.output_mode for sink in topology.sinks))
    reasons = []
    if len(modes) > 1:
        reasons.append(
            f"a query has one output mode and the sinks have several ({', '.join(modes)}): one "
            "query for each"
        )
    queries: list[BuiltQuery] = []
    for mode in modes:
        sinks = tuple(sink for sink in topology.sinks if sink.output_mode == mode)
        name = topology.name if len(modes) == 1 else f"{topology.name}-{mode}"
        queries += _queries(topology, session, reading, found, name, sinks, reasons)
    return queries, reasons


def _keys(topology: Topology, found: Survey) -> dict[str, tuple[str, ...]]:
    everything = frozenset(topology.graph())
    return {part.name: part.key for part in default_components(topology, found, everything)}


def _as_planned(
    topology: Topology, session: SparkSession, reading: Reading, found: Survey, wanted: QueryPlan
) -> BuiltQuery:
    sinks = tuple(sink for sink in topology.sinks if sink.name in wanted.sinks)
    built = _query(topology, session, reading, found, wanted.name, sinks)
    refusal = streaming_refusal(built.frame, wanted.output_mode)
    if refusal is not None:
        raise InvalidTopology(f"query {wanted.name!r}: mode {wanted.output_mode!r}: {refusal}")
    _check_grouping(topology, found, built, wanted)
    fused = fused_components(topology, found, wanted.components)
    if not fused:
        return replace(built, plan=wanted)
    return _fused_query(topology, session, reading, found, replace(built, plan=wanted), fused)


def _check_grouping(
    topology: Topology, found: Survey, built: BuiltQuery, wanted: QueryPlan
) -> None:
    """Refuse a plan that leaves an operator out, or that splits what no shuffle separates."""
    home = {name: c.name for c in wanted.components for name in (c.name, *c.operators)}
    for component in built.plan.components:
        for name in component.operators:
            if name not in home:
                raise InvalidTopology(
                    f"plan: query {wanted.name!r} leaves operator {name!r} out; put it into a "
                    "component."
                )
    fused = {part.name for part in fused_components(topology, found, wanted.components)}
    together = {name for c in wanted.components if c.name in fused for name in c.operators}
    possible = [frozenset(c.operators) - together for c in built.plan.components]
    for component in wanted.components:
        if component.name not in fused and frozenset(component.operators) not in possible:
            shown = "; ".join(", ".join(c.operators) or "(a source)" for c in built.plan.components)
            raise InvalidTopology(
                f"plan: query {wanted.name!r} groups its operators otherwise than its shuffles "
                f"do, which is: {shown}."
            )


def _fused_query(
    topology: Topology, session: SparkSession, reading: Reading, found: Survey, built: BuiltQuery,
    fused: tuple[Fused, ...],
) -> BuiltQuery:  # fmt: skip
    """The same query with one shuffle for each fused component, if Spark agrees."""
    refusal = ""
    for sharing, division in divisions(topology, found, built.sinks, fused):
        try:
            frame = _frame(topology, session, reading, found, sharing, built.sinks, division, fused)
        except PySparkException as error:  # the key is no column there
            refusal = f"component {fused[0].name!r}: {first_line(error)}"
            continue
        shape, row_by_row = _fused_shape(session, frame, built.plan.output_mode)
        refused = unplanned(shape, fused)
        if refused is None:
            return replace(
                built, frame=frame, sharing=sharing, fused=fused, shape=shape, row_by_row=row_by_row
            )
        refusal = refused
    raise InvalidTopology(f"plan: query {built.plan.name!r}: {refusal}")


def _fused_shape(session: SparkSession, frame: DataFrame, output_mode: str) -> tuple[Shape, bool]:
    """What a fused query is planned as, and whether its rows are merged with state one by one.

    Where Spark shuffles too, it does better to aggregate before. In other modes than append a key
    would be emitted for each of its rows.
    """
    for row_by_row in (True, False) if output_mode == "append" else (False,):
        with relaxed(session, True, row_by_row):
            shape = shape_of(planned_execution(frame, output_mode))
        if all(exchange.origin in OURS for exchange in shape.exchanges):
            break
    return shape, row_by_row


def _why_repeated(node: str, found: Survey, ways: frozenset[str]) -> str:
    if node in found.operators and found.operators[node].stateful:
        return "its consumers cannot share its state; send it to sinks, or let one operator follow"
    if node in ways:
        return "both forms of an operator stand behind it, of which one gets rows"
    return "a watermark must be defined after the exchange its consumers would share"


def _queries(
    topology: Topology, session: SparkSession, reading: Reading, found: Survey, name: str,
    sinks: tuple[SinkBinding, ...], reasons: list[str],
) -> list[BuiltQuery]:  # fmt: skip
    together = _query(topology, session, reading, found, name, sinks)
    refusal = streaming_refusal(together.frame, sinks[0].output_mode)
    if refusal is None:
        return [together]
    if len(sinks) == 1:
        raise InvalidTopology(f"sink {sinks[0].name!r}: mode {sinks[0].output_mode!r}: {refusal}")
    names = ", ".join(sink.name for sink in sinks)
    reasons.append(
        f"Spark cannot run the sinks {names} as one query, so each has its own: {refusal}"
    )
    return [
        query
        for sink in sinks
        for query in _queries(
            topology, session, reading, found, f"{name}-{sink.name}", (sink,), reasons
        )
    ]


def _query(
    topology: Topology, session: SparkSession, reading: Reading, found: Survey, name: str,
    sinks: tuple[SinkBinding, ...],
) -> BuiltQuery:  # fmt: skip
    sharing = plan_sharing(topology, found, sinks)
    frame = _frame(topology, session, reading, found, sharing, sinks, Division())
    components = default_components(topology, found, frozenset(sharing.copies))
    plan = QueryPlan(name, components, tuple(sink.name for sink in sinks), sinks[0].output_mode)
    edges = {
        operator.name: operator.upstreams
        for operator in topology.ordered()
        if operator.name in sharing.copies
    }
    stateful = any(found.operators[operator].stateful for operator in edges)
    return BuiltQuery(plan, frame, sinks, edges, sharing, stateful=stateful)


def _frame(
    topology: Topology, session: SparkSession, reading: Reading, found: Survey, sharing: Sharing,
    sinks: tuple[SinkBinding, ...], division: Division, fused: tuple[Fused, ...] = (),
) -> DataFrame:  # fmt: skip
    # Edges of fused components are always counted: they tell whose shuffle is whose.
    measured = reading.measured or bool(division.members)
    assembler = Assembler(
        topology, session, found, sharing, reading.epoch_s, measured, reading.controls,
        reading.at_once, reading.reuse, division,
    )  # fmt: skip
    nodes = list(dict.fromkeys(sink.upstream for sink in sinks))
    rows = {node: assembler.frame(node, "sinks") for node in nodes}
    _check_formats(rows, sinks)
    together = [(part.members, part.key) for part in fused]
    return tagged(rows, together) if len(rows) > 1 else rows[nodes[0]]


def _check_formats(rows: dict[str, DataFrame], sinks: tuple[SinkBinding, ...]) -> None:
    for sink in sinks:
        if isinstance(sink.sink, Files) and sink.sink.format == "csv":
            for field in rows[sink.upstream].schema.fields:
                if isinstance(field.dataType, StructType | ArrayType | MapType):
                    raise InvalidTopology(
                        f"sink {sink.name!r}: format 'csv' has no place for column {field.name!r} "
                        f"of type {field.dataType.simpleString()}; use parquet, orc or json."
                    )


def default_components(
    topology: Topology, found: Survey, nodes: frozenset[str]
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
        analysis = found.operators[operator.name]
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
