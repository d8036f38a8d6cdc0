"""What an operator does, read from Spark's analysed plan: its keys, its state, its shuffles."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from penstock.spark.handles.gateway import asking
from penstock.spark.handles.plan_nodes import (
    EDGE,
    KEYED,
    WINDOWED,
    analysed,
    items,
    kind_of,
)

DELAY = "spark.watermarkDelayMs"  # in the metadata of a column with a watermark

_SHUFFLES = frozenset({"Repartition", "RepartitionByExpression", "Sort", "GlobalLimit", "Window"})
_STATE_FUNCTIONS = ("TransformWithState", "FlatMapGroups", "MapGroups", "CoGroup")
_RELATIONAL = frozenset(
    {"Project", "Filter", "SubqueryAlias", "EventTimeWatermark", "Union", "Aggregate", "Expand",
     "Deduplicate", "DeduplicateWithinWatermark", "Distinct", "View", "WithCTE", "Generate",
     "CollectMetrics"}
)  # fmt: skip


# What is another one in each run of the same program: ids of expressions, of nodes, of objects, of
# frames that SQL names, of the variables of functions in SQL, and seeds that nobody chose.
_OF_THIS_RUN = re.compile(
    r"#\d+L?|\b_pyspark_[0-9a-f]{32}\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
    r"|@[0-9a-f]{4,}|\b0x[0-9a-f]+\b|(?<=lambda [xyz])_\d+"
    r"|(?<=\brand\()-?\d+|(?<=\brandn\()-?\d+|Some\(-?\d{10,}\)"
)


_WINDOW_END = re.compile(r"\+ (\d+)L?\), LongType, Timestamp")


@dataclass(frozen=True)
class Columns:
    """What a stateless step reads, and what it adds, changes or drops."""

    reads: frozenset[str]
    writes: frozenset[str]


@dataclass(frozen=True)
class Watermark:
    """The column of times, and by how much rows may come late."""

    column: str
    delay_ms: int


@dataclass(frozen=True)
class JoinKey:
    """Columns that a join of two streams sets equal, in the order in which Spark divides by them.

    Spark divides either side by exactly these.
    """

    left: tuple[str, ...]
    right: tuple[str, ...]

    def ordered(self, key: Iterable[str]) -> tuple[str, ...] | None:
        """A key in the join's order; None if it is not the whole key of either side."""
        wanted = set(key)
        return next((side for side in (self.left, self.right) if set(side) == wanted), None)


@dataclass(frozen=True)
class OperatorAnalysis:
    """`keys` has one entry for each keyed step of the operator, from its output backwards."""

    keys: tuple[frozenset[str], ...]
    stateful: bool
    shuffles: bool
    joins: tuple[JoinKey, ...] = ()  # of two streams
    opaque: bool = False  # runs code that Spark cannot look into
    columns: "Columns | None" = None  # of a step of projections and filters alone
    # Right on the rows of upstreams, by upstream.
    watermarks: Mapping[str, Watermark] = field(default_factory=dict)
    state_text: str = ""  # the plan that makes its state, or its watermarks; the same in each run
    state_function: bool = False  # keeps state by a function of the user's
    state_ends: bool = False  # keeps it in a way that Spark lets no other state follow
    window_s: float = 0.0  # the longest window of event time that it computes over; 0: none


@asking("read an analysed plan")
def analyse(frame: DataFrame) -> OperatorAnalysis:
    """Look at the part of the plan above the edges of the operator's upstreams."""
    keys: list[frozenset[str]] = []
    joins: list[JoinKey] = []
    stateful = shuffles = opaque = state_function = state_ends = False
    named: frozenset[str] | None = None
    window_s = 0.0
    for node in _nodes(analysed(frame)):
        kind = kind_of(node)
        if kind == "SubqueryAlias" and node.alias().startswith(KEYED):
            named = frozenset(json.loads(node.alias().removeprefix(KEYED)))
            continue
        window_s = max(window_s, _window_s(node))
        if _only_says(node):
            continue
        text = str(node.expressions().toString())
        opaque = opaque or kind not in _RELATIONAL or "PythonUDF" in text
        found = key_of(kind, node)
        if found is not None:
            keys.append(found if named is None else named)
            of_python = kind.startswith(_STATE_FUNCTIONS)
            state_function = state_function or (of_python and named is None)
            state_ends = state_ends or kind == "FlatMapGroupsInPandasWithState"
            named = None
            stateful = stateful or bool(node.isStreaming())
            shuffles = True
            if kind == "Join":
                joins.append(_join_key(node))
        elif kind in _SHUFFLES:
            shuffles = True
    return OperatorAnalysis(
        tuple(keys), stateful, shuffles, tuple(joins), opaque, _columns(frame), _watermarks(frame),
        _state_text(frame, stateful), state_function, state_ends, window_s,
    )  # fmt: skip


@asking("read the windows of a query")
def query_window_s(query: StreamingQuery) -> float:
    """The longest window of event time that a running query computes over; 0: none."""
    plan = query._jsq.streamingQuery().analyzedPlan()
    return max((_window_s(node) for node in _nodes(plan)), default=0.0)


def _window_s(node: Any) -> float:
    """The longest window that one node computes over."""
    if _only_says(node):
        return float(json.loads(node.alias().removeprefix(WINDOWED))["window_us"] or 0) / 1e6
    return longest_window_s(str(node.expressions().toString()))


def longest_window_s(expressions: str) -> float:
    """Of the windows of event time in the text of analysed expressions; 0 where there is none.

    The end of a window is its start and its length in microseconds; sessions have no length.

    >>> longest_window_s("precisetimestampconversion((t + 90000000), LongType, TimestampType)")
    90.0
    """
    return max((int(length) / 1e6 for length in _WINDOW_END.findall(expressions)), default=0.0)


def _state_text(frame: DataFrame, stateful: bool) -> str:
    """The nodes of an operator that keeps state, one a line; of another, its watermarks."""
    lines = [
        _OF_THIS_RUN.sub("", str(node.simpleString(10_000)))
        for node in _nodes(analysed(frame))
        if (stateful and not _only_says(node)) or kind_of(node) == "EventTimeWatermark"
    ]
    return "\n".join(lines)


def _only_says(node: Any) -> bool:
    return kind_of(node) == "SubqueryAlias" and bool(node.alias().startswith(WINDOWED))


def _watermarks(frame: DataFrame) -> dict[str, Watermark]:
    """The watermark that the operator defines on all rows of an upstream, before anything else."""
    found: dict[str, set[Watermark | None]] = {}
    pending: list[tuple[Any, Watermark | None]] = [(analysed(frame), None)]
    while pending:
        node, watermark = pending.pop()
        kind = kind_of(node)
        if kind == "SubqueryAlias" and node.alias().startswith(EDGE):
            found.setdefault(node.alias().removeprefix(EDGE), set()).add(watermark)
            continue
        if kind == "EventTimeWatermark":
            watermark = Watermark(str(node.eventTime().name()), _delay_ms(node))
        elif kind != "SubqueryAlias":
            watermark = None
        pending += [(child, watermark) for child in items(node.children())]
    return {
        name: watermark
        for name, defined in found.items()
        if len(defined) == 1 and (watermark := defined.pop())
    }


def _delay_ms(watermark: Any) -> int:
    (column,) = [c for c in items(watermark.output()) if c.semanticEquals(watermark.eventTime())]
    return int(column.metadata().getLong(DELAY))


def _columns(frame: DataFrame) -> Columns | None:
    """Columns read and written by projections and filters; None if there is anything else."""
    reads: set[str] = set()
    writes: set[str] = set()
    for node in _nodes(analysed(frame)):
        kind = kind_of(node)
        if kind not in ("Project", "Filter", "SubqueryAlias", "View"):
            return None
        if kind == "Filter":
            reads |= _referenced(node.condition())
            if not node.condition().deterministic():
                return None
        elif kind == "Project":
            kept = set()
            for expression in items(node.projectList()):
                if not expression.deterministic():
                    return None
                if kind_of(expression) == "AttributeReference":
                    kept.add(str(expression.name()))
                else:
                    writes.add(str(expression.name()))
                    reads |= _referenced(expression)
            writes |= {str(c.name()) for c in items(node.child().output())} - kept
    return Columns(frozenset(reads), frozenset(writes))


def _referenced(expression: Any) -> set[str]:
    return {str(attribute.name()) for attribute in items(expression.references().toSeq())}


def at_edge(frame: DataFrame, node: str) -> DataFrame:
    """Mark a frame as a node's output; the optimiser drops an alias, so it costs nothing."""
    return frame.alias(EDGE + node)


def keyed_by(frame: DataFrame, columns: Iterable[str]) -> DataFrame:
    """Say by which columns a step of ours groups, where Spark only sees buckets of them."""
    return frame.alias(KEYED + json.dumps(list(columns)))


@asking("read an analysed plan")
def has_watermark(frame: DataFrame) -> bool:
    """Whether the rows have passed a watermark anywhere upstream."""
    return "EventTimeWatermark" in analysed(frame).toString()


def _nodes(node: Any) -> Iterator[Any]:
    """The plan's nodes from the top, down to and without the edges of upstreams."""
    if kind_of(node) == "SubqueryAlias" and node.alias().startswith(EDGE):
        return
    yield node
    for child in items(node.children()):
        yield from _nodes(child)


def key_of(kind: str, node: Any) -> frozenset[str] | None:
    """Names of the columns a node must be partitioned by; None if it needs no partitioning."""
    if kind == "Aggregate":
        return _names(node.groupingExpressions())
    if kind == "Distinct":
        return _names(node.output())
    if kind in ("Deduplicate", "DeduplicateWithinWatermark"):
        return _names(node.keys())
    if kind == "Join" and node.left().isStreaming() and node.right().isStreaming():
        joined = _join_key(node)
        return frozenset(joined.left) | frozenset(joined.right)
    if kind.startswith(_STATE_FUNCTIONS):
        return _grouping(node)
    return None


def _grouping(node: Any) -> frozenset[str]:
    """Grouping columns of a stateful function; some nodes name them, others only count them."""
    methods = {method.getName() for method in node.getClass().getMethods()}
    if "groupingAttributes" in methods:
        return _names(node.groupingAttributes())
    if "groupingAttributesLen" in methods:
        child = node.children().apply(0).output()
        return frozenset(child.apply(i).name() for i in range(node.groupingAttributesLen()))
    return frozenset()


def _join_key(join: Any) -> JoinKey:
    """Columns that a join's condition sets equal, side by side."""
    left: list[str] = []
    right: list[str] = []
    of_left = {column.exprId().id() for column in items(join.left().output())}
    pending = [join.condition().get()] if join.condition().isDefined() else []
    while pending:
        expression = pending.pop(0)
        kind = kind_of(expression)
        if kind == "And":
            pending = [expression.left(), expression.right(), *pending]
        elif kind in ("EqualTo", "EqualNullSafe"):
            one, other = items(expression.children())
            used = {column.exprId().id() for column in items(one.references().toSeq())}
            if not used <= of_left:
                one, other = other, one
            left.append(_name(one))
            right.append(_name(other))
    return JoinKey(tuple(left), tuple(right))


def _names(expressions: Any) -> frozenset[str]:
    """Names of the columns among expressions; one that is computed goes by its alias or text."""
    return frozenset(map(_name, items(expressions)))


def _name(expression: Any) -> str:
    named = kind_of(expression) in ("AttributeReference", "Alias")
    return str(expression.name() if named else expression.sql())
