"""The tasks of components that run apart: as many as a component has processors.

Each works on several key groups, one after the other. Where key groups are placed, those of a task
live on one executor, and it runs there.
"""

from collections.abc import Callable

from pyspark.sql import DataFrame

from penstock.spark import handles
from penstock.spark.act.placement import Placement
from penstock.spark.act.task_groups import task_groups
from penstock.spark.measure.batch_work import TaskGroups

KEPT = 50  # batches, until their tasks are read


class PlacedTasks:
    """Puts batches into tasks, and remembers which key groups each task worked on."""

    def __init__(self) -> None:
        self.placement: Callable[[str], Placement] | None = None  # of a query; None: not placed
        self._known: dict[str, dict[int, TaskGroups]] = {}  # by query and batch

    def narrowed(
        self, batch: DataFrame, batch_id: int, query: str, component: str, tasks: int
    ) -> DataFrame:
        """A batch in so many tasks, or in one for each executor that holds key groups of it."""
        key_groups = int(str(batch.sparkSession.conf.get("spark.sql.shuffle.partitions")))
        tasks = min(tasks, key_groups)
        if self.placement is None:
            return batch.coalesce(tasks)
        groups = task_groups(*self.placement(query).homes(component, key_groups), tasks)
        placed = handles.in_tasks(batch, groups)
        known = self._known.setdefault(query, {})
        known[batch_id] = [] if placed is None else groups
        for old in sorted(known)[:-KEPT]:
            del known[old]
        return batch.coalesce(tasks) if placed is None else placed

    def grouping(self, query: str, batch_id: int) -> TaskGroups:
        """The key groups of each task of a batch; none where that is not known."""
        return self._known.get(query, {}).get(batch_id, [])
