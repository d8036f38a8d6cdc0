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

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.spark.handles.analysed_plan import Mark
from penstock.spark.handles.plan_insertion import frame_of
from penstock.spark.handles.plan_names import EDGE, REMINDER


def marked(frame: DataFrame, mark: Mark) -> DataFrame:
    """A frame with a watermark, to be divided and shared."""
    return frame.withWatermark(mark.column, f"{mark.delay_ms} milliseconds")


def reminded(
    shared: DataFrame, below: DataFrame, path: str,
    divide: Callable[[DataFrame], DataFrame] | None,
) -> DataFrame:  # fmt: skip
    """The rows of a shared exchange for one consumer, which sees the watermark below it.

    `below` is what the exchange divides, as `marked` gave it. A consumer that relies on how rows
    are divided needs the reminder to be divided by the same means.
    """
    watermark = below._jdf.queryExecution().analyzed()
    session = below.sparkSession
    jvm = session.sparkContext._jvm
    assert jvm is not None
    logical = jvm.org.apache.spark.sql.catalyst.plans.logical
    nothing = jvm.PythonUtils.toSeq([])
    empty = logical.LocalRelation(
        watermark.child().output(), nothing, True, jvm.scala.Option.empty()
    )
    plan = watermark.withNewChildren(jvm.PythonUtils.toSeq([empty]))
    reminder = frame_of(session, plan)
    # Each has its own metric: equal exchanges would be reused, and hide the watermark again.
    reminder = reminder.observe(REMINDER + path, F.count(F.lit(1)).alias("rows"))
    return shared.union(reminder if divide is None else divide(reminder))


def without_marks(frame: DataFrame, upstreams: frozenset[str]) -> DataFrame:
    """An operator's frame without the watermarks that it defines right on these upstreams' rows."""
    plan = frame._jdf.queryExecution().analyzed()
    session = frame.sparkSession
    jvm = session.sparkContext._jvm
    assert jvm is not None
    edges = frozenset(EDGE + name for name in upstreams)
    return frame_of(session, _without(jvm, plan, edges))


def is_reminder(exchange: Any) -> bool:
    """Whether a physical exchange divides no rows, but only tells of a watermark."""
    node = exchange.child()
    while node.children().size() == 1:
        if node.getClass().getSimpleName() == "CollectMetricsExec":
            return str(node.name()).startswith(REMINDER)
        node = node.children().apply(0)
    return False


def _without(jvm: Any, node: Any, edges: frozenset[str]) -> Any:
    kind = node.getClass().getSimpleName()
    if kind == "SubqueryAlias" and node.alias().startswith(EDGE):
        return node
    if kind == "EventTimeWatermark" and _is_right_above(node, edges):
        return node.child()
    children = node.children()
    made = [_without(jvm, children.apply(index), edges) for index in range(children.size())]
    return node.withNewChildren(jvm.PythonUtils.toSeq(made)) if made else node


def _is_right_above(node: Any, edges: frozenset[str]) -> bool:
    below = node.child()
    while below.getClass().getSimpleName() == "SubqueryAlias":
        if below.alias() in edges:
            return True
        below = below.child()
    return False
