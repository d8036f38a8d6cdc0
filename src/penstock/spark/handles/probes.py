"""One attempt for each family of handles, which changes nothing: Unavailable where it fails.

What can be done without a trace is done. Of the rest, an attempt looks whether Spark has what the
handles would call.
"""

import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.errors import Unavailable
from penstock.spark.handles.analysed_plan import Watermark, analyse, at_edge, has_watermark
from penstock.spark.handles.cluster import executors
from penstock.spark.handles.common_watermarks import (
    with_reminder,
    with_watermark,
    without_watermarks,
)
from penstock.spark.handles.distinct_counts import LEAST_PRECISION, distinct_count_tables
from penstock.spark.handles.driver import (
    COMPILER,
    installed_sources,
    load_class,
    settings_sources,
    synchronized,
)
from penstock.spark.handles.exchange_insertion import divide_inputs
from penstock.spark.handles.file_scans import OPTIONS, columns_read, file_scan
from penstock.spark.handles.gateway import (
    STREAMING,
    asking,
    context,
    require_constructor,
    require_methods,
)
from penstock.spark.handles.generated_code import compiled_code
from penstock.spark.handles.grouped_tasks import COALESCER, EXISTING
from penstock.spark.handles.held_files import hold_file
from penstock.spark.handles.plans import planned_shape, streaming_refusal
from penstock.spark.handles.pods import pod_trouble
from penstock.spark.handles.pools import CLASS as POOL_CLASS
from penstock.spark.handles.pools import FIELDS as POOL_FIELDS
from penstock.spark.handles.queries import LISTENER
from penstock.spark.handles.state_rewriting import CHECKPOINT_LOGS, REWRITER
from penstock.spark.handles.state_stores import StateStoreKey, state_location
from penstock.spark.handles.work import (
    ALL,
    jobs_of_group,
    map_output_tracker,
    stage_tasks,
    stages,
)

_NOWHERE = StateStoreKey("file:/nowhere", "00000000-0000-0000-0000-000000000000", 0, 0)
_WRAPPER = f"{STREAMING}.runtime.StreamingQueryWrapper"
_QUERY = f"{STREAMING}.runtime.StreamExecution"
_SHARED = "org.apache.spark.sql.internal.SharedState"
_BATCH = f"{STREAMING}.runtime.IncrementalExecution"
_EXCHANGE = "org.apache.spark.sql.execution.exchange.ShuffleExchangeExec"
_STREAM = f"{STREAMING}.runtime.StreamingRelation"
_UPSTREAM = "probe"


def can_load_classes(spark: SparkSession) -> None:
    """The compiler of Spark's generated code is found, so classes are."""
    load_class(COMPILER)


def can_count_compiled_code(spark: SparkSession) -> None:
    """It is counted."""
    compiled_code(spark)


def can_hold_files(spark: SparkSession) -> None:
    """A file of nobody else's is held and let go."""
    with tempfile.NamedTemporaryFile(prefix="penstock-lock-") as file:
        let_go = hold_file(spark, Path(file.name), limit_s=0.0)
        if let_go is None:
            raise Unavailable("Spark could not hold a file that nobody holds.")
        let_go()


def can_register_sources(spark: SparkSession) -> None:
    """The environment of a source can be copied."""
    with asking("register a source"):
        synchronized(spark, spark.sparkContext.environment)


def can_leave_out_search_for_sources(spark: SparkSession) -> None:
    """It is known where found sources are held."""
    with asking("leave out the search for installed sources"):
        installed_sources(spark).dataSourceBuilders().isEmpty()


def can_lighten_configuration(spark: SparkSession) -> None:
    """The sources of settings are where they were."""
    with asking("forget where settings came from"):
        settings_sources(spark)


def can_list_executors(spark: SparkSession) -> None:
    """They are listed."""
    executors(spark)


def can_read_pods(spark: SparkSession) -> None:
    """Those that wait are found, if there can be any."""
    pod_trouble(spark)


def can_request_executors(spark: SparkSession) -> None:
    """The cluster manager knows how many were asked for."""
    master = str(spark.sparkContext.master)
    if master.startswith("local"):
        raise Unavailable(f"The master is {master}, which has no executors of its own.")
    with asking("request executors"):
        context(spark).schedulerBackend().getRequestedTotalExecutors()


def can_drain_executors(spark: SparkSession) -> None:
    """They can be requested, and Spark lets them finish."""
    can_request_executors(spark)
    if spark.conf.get("spark.decommission.enabled", "false") != "true":
        raise Unavailable("spark.decommission.enabled is not true, so no executor can be drained.")


def can_change_pools(spark: SparkSession) -> None:
    """There is a root of pools, and pools have what would be set."""
    with asking("change a scheduler pool"):
        context(spark).taskScheduler().rootPool().getSchedulableByName("no such pool")
        require_constructor(spark, POOL_CLASS, 4)
        require_methods(spark, POOL_CLASS, *POOL_FIELDS)


def can_read_tasks(spark: SparkSession) -> None:
    """Lists of what there is none of are empty."""
    jobs_of_group(spark, "penstock-probe")
    stages(spark, (ALL,))
    stage_tasks(spark, ALL)


def can_read_shuffle_sizes(spark: SparkSession) -> None:
    """What keeps them is found."""
    with asking("read the sizes of a shuffle"):
        name = str(map_output_tracker(spark).getClass().getName())
        require_methods(spark, name, "getMapSizesByExecutorId", "findMissingPartitions")


def can_locate_state(spark: SparkSession) -> None:
    """The driver says that it knows of no such store, and has what groups partitions."""
    with asking("have tasks work on several key groups"):
        require_constructor(spark, COALESCER, 1)
        require_methods(spark, f"{EXISTING}$", "fromDataset")
    state_location(spark, _NOWHERE)


def can_rewrite_state(spark: SparkSession) -> None:
    """Spark's reader and writer of state are made from what we would give them."""
    with asking("divide state anew"):
        require_constructor(spark, CHECKPOINT_LOGS, 3)
        require_constructor(spark, REWRITER, 8)
        spark._streamingCheckpointManager  # noqa: B018 - says so itself where there is none


def can_follow_queries(spark: SparkSession) -> None:
    """Queries have what they would be asked, and take a listener."""
    with asking("follow a query"):
        require_methods(spark, _WRAPPER, "streamingQuery", "lastProgress", "exception")
        require_methods(spark, _QUERY, "resolvedCheckpointRoot", "trigger")
        require_methods(spark, _SHARED, "activeStreamingQueries")
        require_methods(spark, LISTENER, "onQueryProgress")
        require_constructor(spark, f"{LISTENER}Wrapper", 1)


def can_read_batch_plans(spark: SparkSession) -> None:
    """Queries have a last execution, and plans what would be read of them."""
    with asking("read the plan of a batch"):
        require_methods(spark, _QUERY, "lastExecution")
        require_methods(spark, _BATCH, "currentBatchId", "logical", "executedPlan")
        require_methods(spark, _EXCHANGE, "shuffleDependency", "outputPartitioning")


def can_read_operators(spark: SparkSession) -> None:
    """The key and the watermark of an operator that was made for this are found."""
    with asking("read the windows of a query"):
        require_methods(spark, _QUERY, "analyzedPlan")
    found = analyse(_counted(spark))
    if found.keys != (frozenset({"key"}),) or not found.watermarks:
        raise Unavailable(f"Spark could not read an analysed plan: it is taken for {found}.")
    if file_scan(_rows(spark)) is not None:
        raise Unavailable("Spark could not see which files a stream reads: it reads none.")
    if list(columns_read(_rows(spark).select("key"))) != [""]:
        raise Unavailable("Spark could not see which columns a query reads.")
    with asking("see which files a stream reads"):
        require_methods(spark, _STREAM, "dataSource", "schema")
        require_methods(spark, f"{OPTIONS}$", "apply")


def can_change_plans(spark: SparkSession) -> None:
    """An exchange is put into a plan, and a watermark taken out and put below."""
    operator, upstream = _counted(spark), frozenset({_UPSTREAM})
    if divide_inputs(operator, upstream, ("key",), 1) is None:
        raise Unavailable("Spark could not put an exchange into a plan: the key is not found.")
    if has_watermark(without_watermarks(operator, upstream)):
        raise Unavailable("Spark could not take a watermark out of a plan: it is still there.")
    below = with_watermark(_rows(spark), Watermark("timestamp", 1000))
    with_reminder(below.repartition("key"), below, _UPSTREAM, None)


def can_plan_queries(spark: SparkSession) -> None:
    """A query that was made for this is planned, and has its state."""
    refusal = streaming_refusal(_counted(spark), "update")
    if refusal is not None:
        raise Unavailable(f"Spark could not check a streaming query: {refusal}")
    if not planned_shape(_counted(spark), "update").state:
        raise Unavailable("Spark could not plan a streaming query: its state is not found.")


def can_estimate_distinct(spark: SparkSession) -> None:
    """The shortest tables are read."""
    distinct_count_tables(spark, LEAST_PRECISION)


def _rows(spark: SparkSession) -> DataFrame:
    """Rows of a stream that nobody starts."""
    with asking("make a stream"):
        return spark.readStream.format("rate").load().withColumn("key", F.col("value") % 2)


def _counted(spark: SparkSession) -> DataFrame:
    """An operator with a watermark and a key."""
    rows = at_edge(_rows(spark), _UPSTREAM).withWatermark("timestamp", "1 second")
    return rows.groupBy("key").count()
