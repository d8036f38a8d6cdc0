"""An exchange put into an operator's plan, where the function that made the plan cannot be asked.

Spark forgets how rows are divided where a watermark is defined, so the exchange of a component has
to follow the watermark, and users define watermarks inside their operators. The analysed plan is
therefore taken apart above the operator's input and put together again with the exchange in it.
"""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from penstock.spark.handles.gateway import asking, java_class
from penstock.spark.handles.plan_nodes import (
    EDGE,
    analysed,
    frame_of,
    items,
    kind_of,
    scala_sequence,
    with_children,
)

_EXCHANGE = "org.apache.spark.sql.catalyst.plans.logical.RepartitionByExpression"


@asking("put an exchange into a plan")
def divide_inputs(
    frame: DataFrame, upstreams: frozenset[str], key: tuple[str, ...], partitions: int
) -> DataFrame | None:
    """The frame with the rows of some upstreams divided by a key; None if it is not among them.

    The exchange comes right after the operator's last watermark on the way up, or else right
    after the upstream's edge.
    """
    session = frame.sparkSession
    edges = frozenset(EDGE + name for name in upstreams)
    made = _Insertion(session, edges, key, partitions).into(analysed(frame))
    return None if made is None else frame_of(session, made)


@dataclass(frozen=True)
class _Insertion:
    session: SparkSession
    edges: frozenset[str]
    key: tuple[str, ...]
    partitions: int

    def into(self, node: Any) -> Any | None:
        """The plan with an exchange above each of the edges; None if a key column is missing."""
        kind = kind_of(node)
        if kind == "SubqueryAlias" and node.alias() in self.edges:
            return self._exchange(node)
        if kind == "SubqueryAlias" and node.alias().startswith(EDGE):
            return node
        if kind == "EventTimeWatermark" and self._reaches(node):
            above = self._exchange(node)
            if above is not None:
                return above
        made = [self.into(child) for child in items(node.children())]
        if any(child is None for child in made):
            return None
        return with_children(self.session, node, made)

    def _reaches(self, node: Any) -> bool:
        if kind_of(node) == "SubqueryAlias":
            if node.alias() in self.edges:
                return True
            if node.alias().startswith(EDGE):
                return False
        return any(self._reaches(child) for child in items(node.children()))

    def _exchange(self, child: Any) -> Any | None:
        columns = {column.name(): column for column in items(child.output())}
        if not set(self.key) <= columns.keys():
            return None
        by = scala_sequence(self.session, [columns[name] for name in self.key])
        option = java_class(self.session, "scala.Option")
        exchange = java_class(self.session, _EXCHANGE)
        return exchange(by, child, option.apply(self.partitions), option.empty())
