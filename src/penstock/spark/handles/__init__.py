"""Every handle of Spark that is not public, and nothing else. Written for the pinned pyspark.

They reach into the driver's JVM through py4j, where a call costs about a fifth of a millisecond,
so lists are turned into JSON over there and cross in one piece. Objects of the JVM stay in this
folder: what leaves it is plain data or what PySpark has in public. `probe` tries each family of
handles without changing anything; where one does not work, whoever needs it says it is unavailable.
Every function raises Unavailable, with one sentence, when Spark does not answer as expected.
"""

from penstock.spark.handles.analysed_plan import query_window_s
from penstock.spark.handles.batch_execution import BatchExecution, last_execution
from penstock.spark.handles.cluster import (
    ExecutorInfo,
    active_executor_ids,
    decommission_executor,
    executors,
    request_total_executors,
    stop_allocation_manager,
)
from penstock.spark.handles.distinct_counts import distinct_count_tables
from penstock.spark.handles.driver import (
    compile_java,
    lighten_configuration,
    load_class,
    start_driver,
)
from penstock.spark.handles.generated_code import compiled_code
from penstock.spark.handles.grouped_tasks import in_tasks
from penstock.spark.handles.held_files import hold_file
from penstock.spark.handles.plans import planned_shape, streaming_refusal
from penstock.spark.handles.pods import PodTrouble, pod_trouble
from penstock.spark.handles.pools import POOL, pool_slots, set_pool
from penstock.spark.handles.probing import NEED_EXECUTORS, Family, probe, why_unavailable
from penstock.spark.handles.queries import (
    checkpoint_of,
    checkpoint_of_id,
    failure_causes,
    follow_progress,
    last_batch,
    trigger_interval_s,
)
from penstock.spark.handles.stage_parts import StagePart
from penstock.spark.handles.state_rewriting import rewrite_state
from penstock.spark.handles.state_stores import StateStoreKey, report_state_location, state_location
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
