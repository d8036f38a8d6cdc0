"""Whether the handles work in a session, found out without changing anything."""

from collections.abc import Callable, Mapping

from pyspark.sql import SparkSession

from penstock.errors import Unavailable
from penstock.spark.handles.cluster import executors, may_change_executors, may_decommission
from penstock.spark.handles.state import StateStoreKey, state_location
from penstock.spark.handles.work import ALL, jobs_of_group, stage_tasks, stages


def probe(spark: SparkSession) -> Mapping[str, str]:
    """Names of handles that do not work in this session, each with the reason."""
    nowhere = StateStoreKey("file:/nowhere", "00000000-0000-0000-0000-000000000000", 0, 0)
    attempts: dict[str, Callable[[], object]] = {
        "request_total_executors": lambda: may_change_executors(spark),
        "decommission_executor": lambda: may_decommission(spark),
        "executors": lambda: executors(spark),
        "jobs_of_group": lambda: jobs_of_group(spark, "penstock-probe"),
        "stages": lambda: stages(spark, (ALL,)),
        "stage_tasks": lambda: stage_tasks(spark, ALL),
        "state_location": lambda: state_location(spark, nowhere),
    }
    broken = {}
    for name, attempt in attempts.items():
        try:
            attempt()
        except Unavailable as reason:
            broken[name] = str(reason)
    return broken
