"""Components of several keyed operators, which share one shuffle.

Inside a component nothing is shuffled: rows are divided once, by the component's key, where they
enter it (divisions.py says where that is). Spark has to be told that this is enough for operators
grouped by more columns than that (the relaxed distribution), which is true only as long as nobody
divides the rows otherwise in between. So the plan is looked at before a start, and again in the
first batch of each kind.
"""

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import networkx as nx
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.errors import InvalidTopology
from penstock.model.plan import Component, TopologyPlan
from penstock.model.plan_document import Group, PlanChange
from penstock.model.topology import Topology
from penstock.spark.cluster.session import temporary_settings
from penstock.spark.compile.inspection import Inspection
from penstock.spark.handles import last_execution
from penstock.spark.handles.driver import STRICT
from penstock.spark.handles.physical_plan import OURS, Shape

log = logging.getLogger(__name__)

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
    expected: Mapping[PlanChange, Mapping[str, float]] = field(default_factory=dict)


def possible_part(
    choice: PlanChoice, build: Callable[[tuple[Group, ...]], object], reason: InvalidTopology
) -> Iterator[PlanChoice]:
    """What may be tried instead of a proposal that was refused: what is left of it, then none."""
    if isinstance(choice.plan, tuple) and len(choice.plan) > 1:
        kept: tuple[Group, ...] = ()
        for group in choice.plan:
            try:
                build((*kept, group))
            except InvalidTopology as refusal:
                log.warning("%s stay apart: %s", ", ".join(group.operators), refusal)
            else:
                kept = (*kept, group)
        if kept and kept != choice.plan:
            yield replace(choice, plan=kept)
    log.warning("the plan stays as it is: %s", reason)
    yield PlanChoice(orders=choice.orders)


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


def needs_division(topology: Topology, inspection: Inspection, operator: str) -> bool:
    """Whether rows have to meet by key before an operator."""
    declared = topology.find_operator(operator).key is not None
    return inspection.operators[operator].shuffles or declared


def fused_components(
    topology: Topology, inspection: Inspection, components: tuple[Component, ...]
) -> tuple[Fused, ...]:
    """The components that hold more than one operator which would need a shuffle of its own."""
    graph = topology.graph()
    fused = []
    for component in components:
        keyed = [o for o in component.operators if needs_division(topology, inspection, o)]
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
        key = _in_order_of_joins(component.key, inspection, keyed)
        fused.append(Fused(component.name, key, members, entering))
    return tuple(fused)


def _in_order_of_joins(
    key: tuple[str, ...], inspection: Inspection, operators: list[str]
) -> tuple[str, ...]:
    """A component's key as its joins have it: Spark divides by their columns in that order."""
    joins = (join for name in operators for join in inspection.operators[name].joins)
    return next((ordered for join in joins if (ordered := join.ordered(key))), key)


def grouped(
    topology: Topology, inspection: Inspection, plan: TopologyPlan, groups: tuple[Group, ...]
) -> TopologyPlan:
    """A plan in which the operators of each group run as one component of each query."""
    queries = []
    for query in plan.queries:
        present = {name for component in query.components for name in component.operators}
        fused = fused_groups(topology, inspection, groups, present)
        taken = {name for part in fused for name in part.operators}
        rest = [
            replace(c, operators=tuple(o for o in c.operators if o not in taken))
            for c in query.components
            if c.name not in c.operators or not set(c.operators) <= taken
        ]
        queries.append(replace(query, components=(*rest, *fused)))
    return TopologyPlan(tuple(queries), plan.reasons)


def fused_groups(
    topology: Topology, inspection: Inspection,
    wanted: TopologyPlan | tuple[Group, ...] | None, present: Collection[str] | None = None,
) -> tuple[Component, ...]:  # fmt: skip
    """What is fused of the groups, or components, that are wanted; of operators that are present.

    Each is named after its first operator.
    """
    if isinstance(wanted, TopologyPlan):
        wanted = tuple(Group(c.operators, c.key) for q in wanted.queries for c in q.components)
    place = {operator.name: n for n, operator in enumerate(topology.ordered())}
    named: set[str] = set()
    for group in wanted or ():
        for name in group.operators:
            if name not in place:
                raise InvalidTopology(
                    f"plan: operator {name!r} is unknown; known: {', '.join(place)}."
                )
            if name in named:
                raise InvalidTopology(f"plan: operator {name!r} is in two components.")
            named.add(name)
    inside = place if present is None else present
    parts = tuple(
        Component(f"group{n}", tuple(o for o in group.operators if o in inside), group.key)
        for n, group in enumerate(wanted or ())
    )
    made = []
    for part in fused_components(topology, inspection, parts):
        members = tuple(sorted(part.members, key=place.__getitem__))
        made.append(Component(members[0], members, part.key))
    return tuple(made)


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
        assert self._query is not None, "the query was not set in time"
        execution = last_execution(self._query)
        assert execution is not None, "a batch is being written"
        inputs = execution.inputs()
        if inputs in self._seen:
            return
        found = execution.shape()
        if self._planned.texts != found.texts or self._planned.state != found.state:
            raise InvalidTopology(
                f"query {self._name!r}: Spark planned a batch with other shuffles ("
                f"{'; '.join(found.texts)}) than the plan has ({'; '.join(self._planned.texts)}); "
                "its state would be divided in two ways, so nothing of this batch was written."
            )
        self._seen.add(inputs)


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
    with temporary_settings(session, wanted):
        yield
