"""A watermark that several consumers define alike, defined once, below the exchange they share.

Spark forgets how rows are divided where a watermark is defined, so consumers that are to share one
exchange by a component's key have to share the watermark below it as well. Spark then loses
sight of it: when it asks whether another batch is needed it follows watermarks up the executed
plan, where all consumers but one have a reused exchange, and takes what it finds there for the next
batch. So the rows of each consumer are united with none of a stream that has the same watermark,
divided alike. That stream has no tasks, and to Spark it is the same watermark, not a second one.

A filter that follows the watermark stays above it here, while Spark would move it below one that
has no other consumer: the watermark is then that of all rows, as declared, and may be ahead of the
watermark of those that the filter lets pass.
"""

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.spark.handles.analysed_plan import Watermark
from penstock.spark.handles.gateway import asking, java_class
from penstock.spark.handles.plan_nodes import (
    EDGE,
    REMINDER,
    analysed,
    frame_of,
    items,
    kind_of,
    scala_sequence,
    with_children,
)

_NO_ROWS = "org.apache.spark.sql.catalyst.plans.logical.LocalRelation"


def with_watermark(frame: DataFrame, watermark: Watermark) -> DataFrame:
    """A frame with a watermark, to be divided and shared."""
    return frame.withWatermark(watermark.column, f"{watermark.delay_ms} milliseconds")


@asking("pass a watermark on to the consumers of an exchange")
def with_reminder(
    shared: DataFrame, below: DataFrame, path: str,
    divide: Callable[[DataFrame], DataFrame] | None,
) -> DataFrame:  # fmt: skip
    """The rows of a shared exchange for one consumer, which sees the watermark below it.

    `below` is what the exchange divides, as `with_watermark` gave it. A consumer that relies on how
    rows are divided needs the reminder to be divided by the same means.
    """
    session, watermark = below.sparkSession, analysed(below)
    empty = java_class(session, _NO_ROWS)(
        watermark.child().output(), scala_sequence(session, []), True,
        java_class(session, "scala.Option").empty(),
    )  # fmt: skip
    reminder = frame_of(session, with_children(session, watermark, [empty]))
    # Each has its own metric: equal exchanges would be reused, and hide the watermark again.
    reminder = reminder.observe(REMINDER + path, F.count(F.lit(1)).alias("rows"))
    return shared.union(reminder if divide is None else divide(reminder))


@asking("take a watermark out of a plan")
def without_watermarks(frame: DataFrame, upstreams: frozenset[str]) -> DataFrame:
    """An operator's frame without the watermarks that it defines right on these upstreams' rows."""
    session = frame.sparkSession
    edges = frozenset(EDGE + name for name in upstreams)
    return frame_of(session, _without(session, analysed(frame), edges))


def is_reminder(exchange: Any) -> bool:
    """Whether a physical exchange divides no rows, but only passes a watermark on."""
    node = exchange.child()
    while node.children().size() == 1:
        if kind_of(node) == "CollectMetricsExec":
            return str(node.name()).startswith(REMINDER)
        node = node.children().apply(0)
    return False


def _without(session: SparkSession, node: Any, edges: frozenset[str]) -> Any:
    kind = kind_of(node)
    if kind == "SubqueryAlias" and node.alias().startswith(EDGE):
        return node
    if kind == "EventTimeWatermark" and _is_right_above(node, edges):
        return node.child()
    made = [_without(session, child, edges) for child in items(node.children())]
    return with_children(session, node, made)


def _is_right_above(node: Any, edges: frozenset[str]) -> bool:
    below = node.child()
    while kind_of(below) == "SubqueryAlias":
        if below.alias() in edges:
            return True
        below = below.child()
    return False
