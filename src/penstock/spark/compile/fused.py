"""Components of several keyed operators: where the one shuffle of each goes.

Inside a component nothing is shuffled: rows are divided once, by the component's key, where they
enter it. Spark has to be told that this is enough for operators grouped by more columns than that
(the relaxed distribution), which is true only as long as nobody divides the rows otherwise in
between. So the plan is looked at before a start, and again in the first batch of each kind.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import networkx as nx
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.errors import InvalidTopology
from penstock.model.plan import Component, TopologyPlan
from penstock.model.plan_document import Group, PlanChange
from penstock.model.topology import SinkBinding, Topology
from penstock.spark.compile.assembler import Division, Sharing, plan_sharing
from penstock.spark.compile.inspection import Survey
from penstock.spark.handles.analysed_plan import Mark
from penstock.spark.handles.configuration import STRICT
from penstock.spark.handles.physical_plan import OURS, Shape, shape_of

START_LIMIT_S = 60.0
_EXCLUDED = "spark.sql.optimizer.excludedRules"
# Over an empty batch it may drop our shuffle; what state emits would then be divided otherwise.
_EMPTY = "org.apache.spark.sql.catalyst.optimizer.PropagateEmptyRelation"
# Spark aggregates a batch twice before it reads state and once after, which pays where rows are
# shuffled in between. The operator of its real-time mode merges each row with its state instead.
_ROW_BY_ROW = "spark.sql.streaming.useStreamlineAggregator"


@dataclass(frozen=True)
class PlanChoice:
    """Which plan a run wants, and whether state may be carried over to it.

    None goes on with the plan of the checkpoint, or begins without fusion. An empty tuple of
    groups asks for no fusion. Orders come on top of those that the checkpoint runs with, unless
    stateless operators are to run as declared.
    """

    plan: TopologyPlan | tuple[Group, ...] | None = None
    apply: bool = False
    if_possible: bool = False  # stay with the checkpoint's plan where state cannot be carried over
    orders: tuple[tuple[str, ...], ...] = ()
    as_declared: bool = False
    expected_gains: Mapping[PlanChange, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Fused:
    """A component of several keyed operators, as it runs.

    `members` are its keyed operators and what follows them inside it: stateless operators that come
    before the first keyed one run where their rows come from.
    """

    name: str
    key: tuple[str, ...]
    members: frozenset[str]
    entering: frozenset[tuple[str, str]]  # edges on which rows are divided


def needs_division(topology: Topology, found: Survey, operator: str) -> bool:
    """Whether rows have to meet by key before an operator."""
    declared = topology.find_operator(operator).key is not None
    return found.operators[operator].shuffles or declared


def fused_components(
    topology: Topology, found: Survey, components: tuple[Component, ...]
) -> tuple[Fused, ...]:
    """The components that hold more than one operator which would need a shuffle of its own."""
    graph = topology.graph()
    fused = []
    for component in components:
        keyed = [o for o in component.operators if needs_division(topology, found, o)]
        if len(keyed) < 2:
            continue
        inside = graph.subgraph(component.operators)
        members = frozenset(keyed).union(*(nx.descendants(inside, name) for name in keyed))
        entering = frozenset(
            (upstream, name)
            for name in members
            for upstream in topology.find_operator(name).upstreams
            if upstream not in members
        )
        fused.append(Fused(component.name, component.key, members, entering))
    return tuple(fused)


def grouped(
    topology: Topology, found: Survey, plan: TopologyPlan, groups: tuple[Group, ...]
) -> TopologyPlan:
    """A plan in which the operators of each group run as one component of each query."""
    known = {operator.name: n for n, operator in enumerate(topology.ordered())}
    for group in groups:
        for name in group.operators:
            if name not in known:
                raise InvalidTopology(
                    f"plan: operator {name!r} is unknown; known: {', '.join(known)}."
                )
    queries = []
    for query in plan.queries:
        present = {name for component in query.components for name in component.operators}
        wanted = tuple(
            Component(f"group{n}", tuple(o for o in group.operators if o in present), group.key)
            for n, group in enumerate(groups)
        )
        together = fused_components(topology, found, wanted)
        taken = {name for part in together for name in part.members}
        ordered = [tuple(sorted(part.members, key=known.__getitem__)) for part in together]
        fused = [Component(o[0], o, part.key) for o, part in zip(ordered, together, strict=True)]
        rest = [
            replace(c, operators=tuple(o for o in c.operators if o not in taken))
            for c in query.components
            if c.name not in c.operators or not set(c.operators) <= taken
        ]
        queries.append(replace(query, components=(*rest, *fused)))
    return TopologyPlan(tuple(queries), plan.reasons)


def divisions(
    topology: Topology, found: Survey, sinks: tuple[SinkBinding, ...], fused: tuple[Fused, ...]
) -> tuple[tuple[Sharing, Division], ...]:
    """Where shuffles may go, the fewest first.

    Rows that several consumers share cross an exchange anyway. Where no watermark follows it, or
    the same one for all consumers, it can divide by the component's key and be the only one.
    Otherwise it is left out if the work below it is cheap enough to be done for each consumer.
    """
    sharing = plan_sharing(topology, found, sinks)
    members = frozenset(name for component in fused for name in component.members)
    entering = {edge: component.key for component in fused for edge in component.entering}
    ways = []
    if not members & found.watermarked:
        lifted, saved = _lifted(topology, sharing, fused)
        below = {edge: key for edge, key in entering.items() if edge not in saved}
        if lifted:
            ways.append((sharing, Division(below, lifted, members=members)))
    else:
        marks = _marked_alike(topology, found, sharing, fused)
        lifted = {node: component.key for node, (component, _) in marks.items()}
        below = {edge: key for edge, key in entering.items() if edge[0] not in lifted}
        if lifted:
            common = {node: mark for node, (_, mark) in marks.items()}
            ways.append((sharing, Division(below, lifted, common, members)))
    plain = Division(entering, members=members)
    cheap = _cheap_to_repeat(topology, found, sharing, fused)
    if cheap:
        ways.append((plan_sharing(topology, found, sinks, cheap), plain))
    return (*ways, (sharing, plain))


def _lifted(
    topology: Topology, sharing: Sharing, fused: tuple[Fused, ...]
) -> tuple[dict[str, tuple[str, ...]], set[tuple[str, str]]]:
    """Shared nodes that all rows of a component pass, with its key, and the edges this saves."""
    graph = topology.graph()
    lifted: dict[str, tuple[str, ...]] = {}
    saved: set[tuple[str, str]] = set()
    for component in fused:
        heads = {upstream for upstream, _ in component.entering}
        above = [
            node
            for node in sharing.shared
            if node not in lifted
            and all(node == head or node in nx.ancestors(graph, head) for head in heads)
        ]
        if above:
            nearest = max(above, key=lambda node: len(nx.ancestors(graph, node)))
            lifted[nearest] = component.key
            saved |= component.entering
    return lifted, saved


def _marked_alike(
    topology: Topology, found: Survey, sharing: Sharing, fused: tuple[Fused, ...]
) -> dict[str, tuple[Fused, Mark]]:
    """Shared nodes whose consumers all define one watermark, and a component that reads them."""
    graph, timed = topology.graph(), found.watermarked
    stateful = {name for name, analysis in found.operators.items() if analysis.stateful}
    alike: dict[str, tuple[Fused, Mark]] = {}
    for component in fused:
        for node in {upstream for upstream, _ in component.entering}:
            source = topology.find_source(node)
            routed = source is not None and source.route is not None
            if node not in sharing.shared or node in timed or routed or topology.variants:
                continue
            marks = {
                found.operators[name].marks.get(node)
                for name in graph.successors(node)
                if name in found.operators
                and (name in timed or {name, *nx.descendants(graph, name)} & stateful)
            }
            mark = marks.pop() if len(marks) == 1 else None
            if mark is not None and node not in alike:
                alike[node] = (component, mark)
    return alike


def _cheap_to_repeat(
    topology: Topology, found: Survey, sharing: Sharing, fused: tuple[Fused, ...]
) -> frozenset[str]:
    """Shared nodes above a component whose rows come from SQL alone, or straight from a source."""
    graph = topology.graph()
    heads = {upstream for component in fused for upstream, _ in component.entering}
    repeated: set[str] = set()
    for node in sharing.shared:
        below = {node, *nx.ancestors(graph, node)}
        opaque = any(name in found.operators and found.operators[name].opaque for name in below)
        if not opaque and any(head == node or node in nx.ancestors(graph, head) for head in heads):
            repeated |= below
    return frozenset(repeated)


def unplanned(shape: Shape, fused: tuple[Fused, ...]) -> str | None:
    """A sentence if Spark divides rows inside a component by itself."""
    for component in fused:
        for exchange in shape.exchanges:
            if exchange.operator in component.members and exchange.origin not in OURS:
                return (
                    f"component {component.name!r}: Spark needs a shuffle by "
                    f"{', '.join(exchange.by) or 'nothing'} before operator {exchange.operator!r}, "
                    f"because the component's key ({', '.join(component.key)}) does not reach it "
                    "unchanged; take that operator out of the component."
                )
    return None


class ShapeGuard:
    """Looks at the plan of a fused query's batches before anything of them is written.

    A batch without rows of some source is planned otherwise than one with, so each kind is looked
    at once. Called by the query's own thread.
    """

    def __init__(self, planned: Shape, query: str) -> None:
        self._planned = planned
        self._name = query
        self._seen: set[tuple[str, ...]] = set()
        self._query: StreamingQuery | None = None
        self._started = threading.Event()

    def follow(self, query: StreamingQuery) -> None:
        """The query, once it is started; its first batch waits for this."""
        self._query = query
        self._started.set()

    def __call__(self) -> None:
        """Refuse a batch that was planned with other shuffles than those looked at before."""
        self._started.wait(START_LIMIT_S)
        assert self._query is not None, "the query was not told in time"
        execution = self._query._jsq.streamingQuery().lastExecution()
        leaves = execution.logical().collectLeaves()
        kind = tuple(str(leaves.apply(i).getClass().getSimpleName()) for i in range(leaves.size()))
        if kind in self._seen:
            return
        found = shape_of(execution.executedPlan())
        if self._planned.texts != found.texts or self._planned.state != found.state:
            raise InvalidTopology(
                f"query {self._name!r}: Spark planned a batch with other shuffles ("
                f"{'; '.join(found.texts)}) than the plan has ({'; '.join(self._planned.texts)}); "
                "its state would be divided in two ways, so nothing of this batch was written."
            )
        self._seen.add(kind)


@contextmanager
def relaxed(session: SparkSession, fused: bool, row_by_row: bool) -> Iterator[None]:
    """The settings under which fused queries are planned and started, and only they.

    A query keeps the settings of its start, and the checkpoint those of its first batch, so
    they are put back for whatever is started next.
    """
    if not fused:
        yield
        return
    rules = session.conf.get(_EXCLUDED, None)
    wanted = {STRICT: "false", _EXCLUDED: f"{rules},{_EMPTY}" if rules else _EMPTY}
    if row_by_row:
        wanted[_ROW_BY_ROW] = "true"
    before = {name: session.conf.get(name, None) for name in wanted}
    try:
        for name, value in wanted.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            if old is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, old)
