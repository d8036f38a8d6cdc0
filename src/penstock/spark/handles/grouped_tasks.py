"""Tasks that work on several partitions of a batch, each where the first of them prefers to be.

Spark's own coalescing of a frame knows hosts, and not executors: on one host it would put key
groups together that are held by several. Here the groups are given. What Spark has for joins of
stored buckets puts them together, and as it names no place, a task prefers what its first
partition does.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame

from penstock.spark.handles.gateway import asking, java_class, scala_object
from penstock.spark.handles.plan_nodes import frame_of, scala_sequence

COALESCER = "org.apache.spark.sql.execution.datasources.v2.GroupedPartitionCoalescer"
EXISTING = "org.apache.spark.sql.execution.LogicalRDD"


@asking("have tasks work on several key groups")
def in_tasks(batch: DataFrame, groups: Sequence[Sequence[int]]) -> DataFrame | None:
    """The rows of a batch in one task for each group of partitions; None if they are not all."""
    session = batch.sparkSession
    rows = batch._jdf.queryExecution().toRdd()
    if sorted(one for group in groups for one in group) != list(range(rows.getNumPartitions())):
        return None
    given = [scala_sequence(session, list(group)) for group in groups]
    coalescer = java_class(session, COALESCER)(scala_sequence(session, given))
    chosen = java_class(session, "scala.Option").apply(coalescer)
    fewer = rows.coalesce(len(groups), False, chosen, None)
    plan = scala_object(session, EXISTING).fromDataset(fewer, batch._jdf, False, False)
    return frame_of(session, plan)
