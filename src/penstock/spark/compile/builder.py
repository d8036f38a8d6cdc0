"""From a topology to the streaming queries that carry it out.

Sinks of one output mode share one query: the rows for them are tagged, united and handed to all
sinks of a batch at once. Where Spark refuses that, each sink gets its own query, and the plan says
why.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import networkx as nx
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StructType

from penstock.errors import InvalidTopology
from penstock.fusion.reading import FORMATS, ReadingChoice
from penstock.model.plan import Orders, QueryPlan, TopologyPlan
from penstock.model.plan_document import Group
from penstock.model.sinks import Files
from penstock.model.topology import SinkBinding, Topology
from penstock.spark.compile.assembler import Assembler, Division
from penstock.spark.compile.cheaper_forms import on_the_way
from penstock.spark.compile.components import default_components
from penstock.spark.compile.divisions import divisions
from penstock.spark.compile.fused import Fused, fused_components, grouped, relaxed, unplanned
from penstock.spark.compile.inspection import Inspection, Reading, inspect_topology
from penstock.spark.compile.limits import why_refused
from penstock.spark.compile.plan_check import check_grouping, check_plan
from penstock.spark.compile.readings import shared_by_price
from penstock.spark.compile.refusals import told
from penstock.spark.compile.reordering import fitting_orders, reordered, same_rows
from penstock.spark.compile.route_inference import with_routes
from penstock.spark.compile.sharing import Sharing, by_format
from penstock.spark.handles import planned_shape, streaming_refusal
from penstock.spark.handles.messages import first_line
from penstock.spark.handles.physical_plan import OURS, Shape
from penstock.spark.sinks.tagging import TAG, tagged

log = logging.getLogger(__name__)


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
    # Sources that are read again for each consumer, and what that was decided by.
    again: tuple[str, ...] = ()
    readings: Mapping[str, ReadingChoice] = field(default_factory=dict)

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
    inspection: Inspection
    topology: Topology  # as it runs: declared, but for the order of stateless operators
    orders: Orders = ()  # of runs that are carried out in another order than declared
    notes: tuple[str, ...] = ()  # on orders that were wanted
    repeats: tuple[str, ...] = ()  # work that is done more than once per batch, and why


def build(
    topology: Topology, session: SparkSession, reading: Reading,
    wanted: TopologyPlan | tuple[Group, ...] | None = None, orders: Orders = (),
    tasks: int | None = None,
) -> BuiltTopology:  # fmt: skip
    """Check a topology against Spark and build its queries; nothing is started.

    A plan that is given says which sinks share a query and which operators a component; without
    one, sinks of one output mode share a query and every shuffle begins a component. Runs of
    stateless operators are put into these orders as far as they allow it. Where `tasks`
    are given, about as many do the work of all key groups of a branch, not one for each.
    """
    for name, feedback in topology.feedbacks.items():
        raise InvalidTopology(
            f"feedback {name!r} closes a loop from operator {feedback.operator!r}; a topology with "
            "a loop runs apart only (--apart, or run(apart=True))."
        )
    inspection = inspect_topology(topology, session, reading)
    followed = _state_before_state(topology, inspection)
    if followed:
        inspection = inspect_topology(topology, session, reading, inspection.sources, followed)
    topology, inspection = with_routes(topology, inspection, reading)
    declared = _Builder(topology, session, reading, inspection, tasks)
    if not orders:
        return declared.build(wanted)
    ordered, taken, notes = declared.in_order(orders)
    built = ordered.build(wanted)
    return replace(built, schemas=inspection.schemas, orders=taken, notes=notes)


def _state_before_state(topology: Topology, inspection: Inspection) -> frozenset[str]:
    """Operators with state that lets none follow, though some does: in them or behind them."""
    graph = topology.graph()
    stateful = {name for name, found in inspection.operators.items() if found.stateful}
    return frozenset(
        name
        for name, found in inspection.operators.items()
        if found.state_ends and (len(found.keys) > 1 or stateful & nx.descendants(graph, name))
    )


@dataclass(frozen=True)
class _Builder:
    """Builds the queries of one topology that was inspected."""

    topology: Topology
    session: SparkSession
    reading: Reading
    inspection: Inspection
    tasks: int | None = None  # that run at once, where key groups need none of their own
    _read: dict[str, dict[str, DataFrame]] = field(default_factory=dict)  # sources, by query

    def in_order(self, wanted: Orders) -> tuple["_Builder", Orders, tuple[str, ...]]:
        """The topology as it is to run, if its rows stay what they are; else as it was declared."""
        orders, reasons = fitting_orders(self.topology, self.inspection, wanted)
        if not orders:
            return self, (), reasons
        try:
            ordered = self._reordered(orders)
            refused = ordered._other_columns(self)
        except InvalidTopology as error:
            refused = str(error)
        if refused is None:
            changed = tuple(f"order {' > '.join(order)}, not as declared" for order in orders)
            return ordered, orders, (*reasons, *changed)
        log.warning("stateless operators keep their order: %s", refused)
        return self, (), (*reasons, f"order kept as declared: {refused}")

    def _reordered(self, orders: Orders) -> "_Builder":
        made = reordered(self.topology, self.inspection, orders)
        again = inspect_topology(
            made, self.session, self.reading, self.inspection.sources, self.inspection.followed
        )
        return replace(self, topology=made, inspection=again)

    def _other_columns(self, declared: "_Builder") -> str | None:
        """A sentence if a sink would not get the columns that were declared."""
        for then, now in zip(declared.topology.sinks, self.topology.sinks, strict=True):
            before = declared.inspection.types[then.upstream]
            if not same_rows(before, self.inspection.types[now.upstream]):
                return f"sink {now.name!r} would get other columns"
        return None

    def build(self, wanted: TopologyPlan | tuple[Group, ...] | None) -> BuiltTopology:
        """All queries, as they are wanted or as few as Spark allows."""
        if isinstance(wanted, tuple) and wanted:
            wanted = grouped(self.topology, self.inspection, self.build(None).plan, wanted)
        if isinstance(wanted, TopologyPlan):
            check_plan(self.topology, self.inspection, wanted)
            return self._built(wanted, [self._as_planned(query) for query in wanted.queries])
        queries, reasons = self._by_mode()
        plan = TopologyPlan(tuple(query.plan for query in queries), tuple(dict.fromkeys(reasons)))
        return self._built(plan, queries)

    def _built(self, plan: TopologyPlan, queries: list[BuiltQuery]) -> BuiltTopology:
        everything = frozenset(self.topology.graph())
        components = default_components(self.topology, self.inspection, everything)
        keys = {component.name: component.key for component in components}
        repeats = [
            f"{node} runs {query.sharing.copies[node]} times per batch: "
            f"{self._why_repeated(node, query)}"
            for query in queries
            for node in query.sharing.repeated
        ]
        repeats += [
            f"{source} is read once per batch: {reading.what}"
            for query in queries
            for source, reading in query.readings.items()
            if not reading.again and not query.fused
        ]
        return BuiltTopology(
            plan, tuple(queries), self.inspection.schemas, keys, self.inspection, self.topology,
            repeats=tuple(dict.fromkeys(repeats)),
        )  # fmt: skip

    def _by_mode(self) -> tuple[list[BuiltQuery], list[str]]:
        """As few queries as Spark allows, and why there is more than one."""
        name, sinks = self.topology.name, self.topology.sinks
        modes = list(dict.fromkeys(sink.output_mode for sink in sinks))
        reasons = []
        if len(modes) > 1:
            reasons.append(
                f"a query has one output mode and the sinks have several ({', '.join(modes)}): one "
                "query for each"
            )
        queries: list[BuiltQuery] = []
        for mode in modes:
            own = tuple(sink for sink in sinks if sink.output_mode == mode)
            queries += self._queries(name if len(modes) == 1 else f"{name}-{mode}", own, reasons)
        return queries, reasons

    def _queries(
        self, name: str, sinks: tuple[SinkBinding, ...], reasons: list[str]
    ) -> list[BuiltQuery]:
        """One query for sinks of one mode, or one for each of them where Spark refuses that."""
        together = self._query(name, sinks)
        refusal = streaming_refusal(together.frame, sinks[0].output_mode)
        if refusal is None:
            return [together]
        if len(sinks) == 1:
            raise InvalidTopology(
                self._state_after_state(together)
                or f"sink {sinks[0].name!r}: mode {sinks[0].output_mode!r}: "
                f"{self._told(together, sinks[0].output_mode, refusal)}"
            )
        names = ", ".join(sink.name for sink in sinks)
        reasons.append(
            f"Spark cannot run the sinks {names} as one query, so each has its own: "
            f"{why_refused(refusal)}"
        )
        return [
            query
            for sink in sinks
            for query in self._queries(f"{name}-{sink.name}", (sink,), reasons)
        ]

    def _told(self, query: BuiltQuery, mode: str, refusal: str) -> str:
        return told(self.topology, self.inspection, set(query.edges), mode, refusal)

    def _state_after_state(self, query: BuiltQuery) -> str | None:
        """Why Spark refuses a query, if that is a state behind one that lets none follow."""
        operators = self.inspection.operators
        below: dict[str, str] = {}  # an operator that lets no state follow, by who is behind it
        for operator in self.topology.ordered():
            if operator.name not in query.edges:
                continue
            first = next((below[one] for one in operator.upstreams if one in below), None)
            found = operators[operator.name]
            if found.state_ends and len(found.keys) > 1:
                first = operator.name
            if first is not None and found.stateful:
                return (
                    f"operator {operator.name!r} keeps state behind operator {first!r}, whose "
                    "windows of rows (window_aggregate) or applyInPandasWithState let no other "
                    "state follow in one query; run components apart (--apart, or "
                    "run(apart=True)), use windows of time, or end the topology there with "
                    "ToChannel and read that channel in another one."
                )
            if first is not None or found.state_ends:
                below[operator.name] = first or operator.name
        return None

    def _query(self, name: str, sinks: tuple[SinkBinding, ...]) -> BuiltQuery:
        begun = self.reading.again
        shared = shared_by_price(
            self.topology, self.inspection, sinks,
            begun.get(name, by_format(self.inspection)) if begun is not None else None,
            lambda sharing: self._frame(name, sharing, sinks, Division()),
        )  # fmt: skip
        sharing = shared.sharing
        components = default_components(self.topology, self.inspection, frozenset(sharing.copies))
        plan = QueryPlan(name, components, tuple(sink.name for sink in sinks), sinks[0].output_mode)
        edges = {
            operator.name: operator.upstreams
            for operator in self.topology.ordered()
            if operator.name in sharing.copies
        }
        stateful = any(self.inspection.operators[operator].stateful for operator in edges)
        again = tuple(sorted(sharing.unshared & self.inspection.files.keys()))
        return BuiltQuery(
            plan, shared.frame, sinks, edges, sharing, stateful=stateful, again=again,
            readings=shared.readings,
        )  # fmt: skip

    def _as_planned(self, wanted: QueryPlan) -> BuiltQuery:
        """One query of a plan that was given."""
        sinks = tuple(sink for sink in self.topology.sinks if sink.name in wanted.sinks)
        built = self._query(wanted.name, sinks)
        refusal = streaming_refusal(built.frame, wanted.output_mode)
        if refusal is not None:
            raise InvalidTopology(
                self._state_after_state(built)
                or f"query {wanted.name!r}: mode {wanted.output_mode!r}: "
                f"{self._told(built, wanted.output_mode, refusal)}"
            )
        check_grouping(self.topology, self.inspection, built.plan, wanted)
        fused = fused_components(self.topology, self.inspection, wanted.components)
        built = replace(built, plan=wanted)
        return self._fused(built, fused) if fused else built

    def _fused(self, built: BuiltQuery, fused: tuple[Fused, ...]) -> BuiltQuery:
        """The same query with one shuffle for each fused component, if Spark agrees."""
        refusal = ""
        for sharing, division in divisions(self.topology, self.inspection, built.sinks, fused):
            try:
                frame = self._frame(built.plan.name, sharing, built.sinks, division, fused)
            except PySparkException as error:  # the key is no column there
                refusal = f"component {fused[0].name!r}: {first_line(error)}"
                continue
            shape, row_by_row = _fused_shape(frame, built.plan.output_mode)
            refused = unplanned(shape, fused)
            if refused is None:
                return replace(
                    built, frame=frame, sharing=sharing, fused=fused, shape=shape,
                    row_by_row=row_by_row,
                )  # fmt: skip
            refusal = refused
        raise InvalidTopology(f"plan: query {built.plan.name!r}: {refusal}")

    def _frame(
        self, query: str, sharing: Sharing, sinks: tuple[SinkBinding, ...], division: Division,
        fused: tuple[Fused, ...] = (),
    ) -> DataFrame:  # fmt: skip
        if not self._read:  # what was read to look at the operators is what the first query reads
            self._read[query] = dict(self.inspection.sources)
        sources = self._read.setdefault(query, {})
        # Edges of fused components are always counted: they show whose shuffle is whose.
        measured = self.reading.measured or bool(division.members)
        reading = replace(self.reading, measured=measured)
        assembler = Assembler(
            self.topology, self.session, self.inspection, sharing, reading, division, sources
        )
        nodes = list(dict.fromkeys(sink.upstream for sink in sinks))
        rows = {node: assembler.frame(node, "sinks") for node in nodes}
        _check_formats(rows, sinks)
        together = [(part.members, part.key) for part in fused]
        if len(rows) > 1:
            return tagged(rows, together, lambda branch, its: self._gathered(branch, its, 1))
        # Twice as many where no other branch fills the slots that an uneven division leaves idle.
        return self._gathered(rows[nodes[0]], nodes, 2)

    def _gathered(self, branch: DataFrame, nodes: Iterable[str], times: int) -> DataFrame:
        """What ends with state in fewer tasks; its state stays divided as it is.

        Each task of a small batch costs more than its rows. Tasks of routes stay: they are
        measured one by one.
        """
        key_groups = int(str(self.session.conf.get("spark.sql.shuffle.partitions")))
        routes = [one.route for one in self.topology.sources]
        routes += [one.route for one in self.topology.operators]
        tasks = times * (self.tasks or key_groups)
        if any(routes) or 2 * tasks > key_groups:
            return branch
        graph = self.topology.graph()
        found = self.inspection.operators
        graph.remove_nodes_from([name for name in found if found[name].stateful])
        sources = {source.name for source in self.topology.sources}
        stateless = sources.union(*(nx.descendants(graph, name) for name in sources))
        return branch.coalesce(tasks) if stateless.isdisjoint(nodes) else branch

    def _sources_of(self, node: str) -> set[str]:
        above = {node, *nx.ancestors(self.topology.graph(), node)}
        return above & {source.name for source in self.topology.sources}

    def _why_repeated(self, node: str, query: BuiltQuery) -> str:
        if node in query.readings and not query.fused:
            return query.readings[node].what
        if node in query.sharing.unshared:
            files = self._sources_of(node) & self.inspection.files.keys()
            if not files:
                return "each component divides its rows itself, and an exchange would add a shuffle"
            formats = {FORMATS[self.inspection.files[name].format].name for name in files}
            return (
                f"each consumer reads the columns it uses from {' and '.join(sorted(formats))} "
                "files, where an exchange would carry all of them"
            )
        analysis = self.inspection.operators.get(node)
        if analysis is not None and analysis.stateful:
            return (
                "its consumers cannot share its state; send it to sinks, let one operator follow, "
                "or run apart with each of these operators declared as separate"
            )
        if node in on_the_way(self.topology):
            return "both forms of an operator stand behind it, of which one gets rows"
        return "a watermark must be defined after the exchange its consumers would share"


def _fused_shape(frame: DataFrame, output_mode: str) -> tuple[Shape, bool]:
    """What a fused query is planned as, and whether its rows are merged with state one by one.

    Where Spark shuffles too, it does better to aggregate before. In other modes than append a key
    would be emitted for each of its rows.
    """
    for row_by_row in (True, False) if output_mode == "append" else (False,):
        with relaxed(frame.sparkSession, True, row_by_row):
            shape = planned_shape(frame, output_mode)
        if all(exchange.origin in OURS for exchange in shape.exchanges):
            break
    return shape, row_by_row


def _check_formats(rows: dict[str, DataFrame], sinks: tuple[SinkBinding, ...]) -> None:
    for sink in sinks:
        if isinstance(sink.sink, Files) and sink.sink.format == "csv":
            for field in rows[sink.upstream].schema.fields:
                if isinstance(field.dataType, StructType | ArrayType | MapType):
                    raise InvalidTopology(
                        f"sink {sink.name!r}: format 'csv' has no place for column {field.name!r} "
                        f"of type {field.dataType.simpleString()}; use parquet, orc or json."
                    )
