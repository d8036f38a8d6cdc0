"""One micro-batch of a query as Spark runs it."""

from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from penstock.spark.handles.gateway import asking
from penstock.spark.handles.physical_plan import Shape, shape_of
from penstock.spark.handles.plan_nodes import items, kind_of
from penstock.spark.handles.stage_parts import StagePart, stage_parts


class BatchExecution:
    """A batch that was begun.

    Its plan may be read when the batch has ended, by anyone, or while it is written, by the thread
    that runs it. Before, its lazy parts would be made by whoever looks, outside of the query's
    session, and the query would wait for it.
    """

    def __init__(self, execution: Any) -> None:
        self._execution = execution
        self.batch_id = int(execution.currentBatchId())

    @asking("say what a batch reads")
    def inputs(self) -> tuple[str, ...]:
        """Kinds of the plan's leaves: one without rows is planned otherwise than one with."""
        return tuple(kind_of(leaf) for leaf in items(self._execution.logical().collectLeaves()))

    @asking("read the plan of a batch")
    def shape(self) -> Shape:
        """Its shuffles, and how its state is divided."""
        return shape_of(self._execution.executedPlan())

    @asking("read the stages of a batch")
    def stage_parts(self) -> tuple[StagePart, ...]:
        """What its tasks carry out."""
        return stage_parts(self._execution.executedPlan())


@asking("find a query's plan")
def last_execution(query: StreamingQuery) -> BatchExecution | None:
    """The newest batch of a query that was begun."""
    execution = query._jsq.streamingQuery().lastExecution()
    return None if execution is None else BatchExecution(execution)
