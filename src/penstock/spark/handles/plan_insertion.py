"""An exchange put into an operator's plan, where the function that made the plan cannot be asked.

Spark forgets how rows are divided where a watermark is defined, so the exchange of a component has
to follow the watermark, and users define watermarks inside their operators. The analysed plan is
therefore taken apart above the operator's input and put together again with the exchange in it.
"""

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from penstock.spark.handles.plan_names import EDGE


def divide_inputs(
    frame: DataFrame, upstreams: frozenset[str], key: tuple[str, ...], partitions: int
) -> DataFrame | None:
    """The frame with the rows of some upstreams divided by a key; None if it is not among them.

    The exchange comes right after the operator's last watermark on the way up, or else right
    after the upstream's edge.
    """
    plan = frame._jdf.queryExecution().analyzed()
    session = frame.sparkSession
    jvm = session.sparkContext._jvm
    assert jvm is not None
    made = _divided(jvm, plan, frozenset(EDGE + name for name in upstreams), key, partitions)
    if made is None:
        return None
    return frame_of(session, made)


def frame_of(session: SparkSession, plan: Any) -> DataFrame:
    """The frame of a logical plan (a py4j handle)."""
    jvm = session.sparkContext._jvm
    assert jvm is not None
    dataset = jvm.org.apache.spark.sql.classic.Dataset
    return DataFrame(dataset.ofRows(session._jsparkSession, plan), session)


def _divided(
    jvm: Any, node: Any, edges: frozenset[str], key: tuple[str, ...], partitions: int
) -> Any | None:
    """The plan with an exchange above each of the edges; None if a key column is missing there."""
    kind = node.getClass().getSimpleName()
    if kind == "SubqueryAlias" and node.alias() in edges:
        return _exchange(jvm, node, key, partitions)
    if kind == "SubqueryAlias" and node.alias().startswith(EDGE):
        return node
    children = node.children()
    if kind == "EventTimeWatermark" and _reaches(node, edges):
        above = _exchange(jvm, node, key, partitions)
        if above is not None:
            return above
    made = [
        _divided(jvm, children.apply(index), edges, key, partitions)
        for index in range(children.size())
    ]
    if any(child is None for child in made):
        return None
    return node.withNewChildren(jvm.PythonUtils.toSeq(made)) if made else node


def _reaches(node: Any, edges: frozenset[str]) -> bool:
    if node.getClass().getSimpleName() == "SubqueryAlias":
        if node.alias() in edges:
            return True
        if node.alias().startswith(EDGE):
            return False
    children = node.children()
    return any(_reaches(children.apply(index), edges) for index in range(children.size()))


def _exchange(jvm: Any, child: Any, key: tuple[str, ...], partitions: int) -> Any | None:
    output = child.output()
    columns = {output.apply(i).name(): output.apply(i) for i in range(output.size())}
    if not set(key) <= columns.keys():
        return None
    expressions = jvm.PythonUtils.toSeq([columns[name] for name in key])
    node = jvm.org.apache.spark.sql.catalyst.plans.logical.RepartitionByExpression
    count = jvm.scala.Option.apply(partitions)
    return node(expressions, child, count, jvm.scala.Option.empty())
