"""Every handle of Spark that is not public, and nothing else. Written for the pinned pyspark.

They reach into the driver's JVM through py4j, where a call costs about a fifth of a millisecond,
so lists are turned into JSON over there and cross in one piece. `probe` tries each handle
without changing anything; where one does not work, whoever needs it says it is unavailable.
Every function raises Unavailable, with one sentence, when Spark does not answer as expected.
"""

from penstock.spark.handles.cluster import (
    ExecutorInfo,
    active_executor_ids,
    decommission_executor,
    executors,
    request_total_executors,
    stop_allocation_manager,
)
from penstock.spark.handles.configuration import lighten_configuration
from penstock.spark.handles.plans import planned_execution, streaming_refusal
from penstock.spark.handles.probing import probe
from penstock.spark.handles.queries import (
    checkpoint_of,
    failure_cause,
    follow_progress,
    last_batch,
    last_execution,
    trigger_interval_s,
)
from penstock.spark.handles.state import (
    StateStoreKey,
    report_state_location,
    rewrite_state,
    state_location,
)
from penstock.spark.handles.work import (
    JobInfo,
    ShuffleSizes,
    StageInfo,
    TaskColumns,
    Texts,
    jobs_of_group,
    shuffle_sizes,
    stage_tasks,
    stages,
)

__all__ = [
    "ExecutorInfo",
    "JobInfo",
    "ShuffleSizes",
    "StageInfo",
    "StateStoreKey",
    "TaskColumns",
    "Texts",
    "active_executor_ids",
    "checkpoint_of",
    "decommission_executor",
    "executors",
    "failure_cause",
    "follow_progress",
    "jobs_of_group",
    "last_batch",
    "last_execution",
    "lighten_configuration",
    "planned_execution",
    "probe",
    "report_state_location",
    "request_total_executors",
    "rewrite_state",
    "shuffle_sizes",
    "stage_tasks",
    "stages",
    "state_location",
    "stop_allocation_manager",
    "streaming_refusal",
    "trigger_interval_s",
]
