"""Nodes of Spark's plans, which stay in this folder: what leaves it is plain data or a frame."""

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from penstock.spark.handles.gateway import PYTHON_UTILS, java_class

EDGE = "penstock_edge_"  # prefix of the aliases that delimit operators in an analysed plan
KEYED = "penstock_keyed_"  # prefix of the aliases that name the keys of the stateful step below
WINDOWED = "penstock_windowed_"  # prefix of the aliases that say what a window step of ours does
METRIC = "penstock:"  # prefix of the observed metrics in a query's progress
PATH = ">"  # a metric is named after its node, then the consumers on the way to the sink
REMINDER = "reminder:"  # prefix of metrics that nobody reads; each is above a stream of no rows


def analysed(frame: DataFrame) -> Any:
    """The analysed plan of a frame."""
    return frame._jdf.queryExecution().analyzed()


def frame_of(session: SparkSession, plan: Any) -> DataFrame:
    """The frame of a logical plan."""
    dataset = java_class(session, "org.apache.spark.sql.classic.Dataset")
    return DataFrame(dataset.ofRows(session._jsparkSession, plan), session)


def kind_of(node: Any) -> str:
    """The name of a node's class."""
    return str(node.getClass().getSimpleName())


def items(sequence: Any) -> list[Any]:
    """The entries of a sequence of Scala's."""
    return [sequence.apply(i) for i in range(sequence.size())]


def scala_sequence(session: SparkSession, entries: list[Any]) -> Any:
    """A sequence of Scala's."""
    return java_class(session, PYTHON_UTILS).toSeq(entries)


def with_children(session: SparkSession, node: Any, children: list[Any]) -> Any:
    """A node over other children; one without any is what it was."""
    return node.withNewChildren(scala_sequence(session, children)) if children else node
