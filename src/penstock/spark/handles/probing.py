"""Whether the handles work in a session, found out without changing anything.

Handles that stand and fall together are a family, and each family has a probe. Where it fails,
whoever needs the family says that it is unavailable, and the rest goes on.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from pyspark.sql import SparkSession

from penstock.errors import Unavailable
from penstock.spark.handles import (
    analysed_plan,
    batch_execution,
    cluster,
    common_watermarks,
    distinct_counts,
    driver,
    exchange_insertion,
    file_scans,
    generated_code,
    grouped_tasks,
    held_files,
    keyed_steps,
    plans,
    pods,
    pools,
    probes,
    queries,
    state_reading,
    state_rewriting,
    state_stores,
    work,
)


class Family(StrEnum):
    """Handles that one probe covers, by what they do."""

    LOAD_CLASSES = "load classes into the driver"
    COUNT_COMPILED_CODE = "count compiled code"
    HOLD_FILES = "hold files with the driver"
    REGISTER_SOURCES = "register sources"
    LEAVE_OUT_SEARCH = "leave out the search for sources"
    LIGHTEN_CONFIGURATION = "lighten the configuration"
    LIST_EXECUTORS = "list executors"
    READ_PODS = "read pods that wait"
    REQUEST_EXECUTORS = "request executors"
    DRAIN_EXECUTORS = "drain executors"
    CHANGE_POOLS = "change scheduler pools"
    READ_TASKS = "read jobs, stages and tasks"
    READ_SHUFFLE_SIZES = "read sizes of shuffles"
    LOCATE_STATE = "find and move state"
    REWRITE_STATE = "divide state anew"
    FOLLOW_QUERIES = "follow queries"
    READ_BATCH_PLANS = "read plans of batches"
    READ_OPERATORS = "read plans of operators"
    CHANGE_PLANS = "change plans of operators"
    PLAN_QUERIES = "plan queries"
    ESTIMATE_DISTINCT = "estimate distinct values"


NEED_EXECUTORS = frozenset({Family.REQUEST_EXECUTORS, Family.DRAIN_EXECUTORS})


@dataclass(frozen=True)
class Probe:
    """The handles of a family, and what raises Unavailable where they do not work."""

    attempt: Callable[[SparkSession], None]
    handles: tuple[Callable[..., object], ...]


PROBES: Mapping[Family, Probe] = {
    Family.LOAD_CLASSES: Probe(
        probes.can_load_classes, (driver.start_driver, driver.compile_java, driver.load_class)
    ),
    Family.COUNT_COMPILED_CODE: Probe(
        probes.can_count_compiled_code, (generated_code.compiled_code,)
    ),
    Family.HOLD_FILES: Probe(probes.can_hold_files, (held_files.hold_file,)),
    Family.REGISTER_SOURCES: Probe(probes.can_register_sources, (driver.register_sources,)),
    Family.LEAVE_OUT_SEARCH: Probe(
        probes.can_leave_out_search_for_sources, (driver.leave_out_search_for_sources,)
    ),
    Family.LIGHTEN_CONFIGURATION: Probe(
        probes.can_lighten_configuration, (driver.lighten_configuration,)
    ),
    Family.LIST_EXECUTORS: Probe(
        probes.can_list_executors,
        (cluster.executors, cluster.active_executor_ids),
    ),
    Family.READ_PODS: Probe(probes.can_read_pods, (pods.pod_trouble,)),
    Family.REQUEST_EXECUTORS: Probe(
        probes.can_request_executors,
        (cluster.request_total_executors, cluster.stop_allocation_manager),
    ),
    Family.DRAIN_EXECUTORS: Probe(probes.can_drain_executors, (cluster.decommission_executor,)),
    Family.CHANGE_POOLS: Probe(probes.can_change_pools, (pools.set_pool, pools.pool_slots)),
    Family.READ_TASKS: Probe(
        probes.can_read_tasks, (work.jobs_of_group, work.stages, work.stage_tasks)
    ),
    Family.READ_SHUFFLE_SIZES: Probe(probes.can_read_shuffle_sizes, (work.shuffle_sizes,)),
    Family.LOCATE_STATE: Probe(
        probes.can_locate_state,
        (
            state_stores.state_location,
            state_stores.report_state_location,
            state_stores.StoreLocations,
            grouped_tasks.in_tasks,
        ),
    ),
    Family.REWRITE_STATE: Probe(
        probes.can_rewrite_state,
        (
            state_rewriting.rewrite_state,
            state_rewriting.repartition_state,
            state_reading.state_digests,
        ),
    ),
    Family.FOLLOW_QUERIES: Probe(
        probes.can_follow_queries,
        (
            queries.checkpoint_of,
            queries.checkpoint_of_id,
            queries.last_batch,
            queries.trigger_interval_s,
            queries.failure_causes,
            queries.follow_progress,
        ),
    ),
    Family.READ_BATCH_PLANS: Probe(
        probes.can_read_batch_plans,
        (batch_execution.last_execution, batch_execution.BatchExecution),
    ),
    Family.READ_OPERATORS: Probe(
        probes.can_read_operators,
        (
            analysed_plan.analyse,
            analysed_plan.has_watermark,
            analysed_plan.at_edge,
            analysed_plan.keyed_by,
            analysed_plan.longest_window_s,
            analysed_plan.query_window_s,
            file_scans.columns_read,
            file_scans.file_scan,
            keyed_steps.keyed_step,
            keyed_steps.columns_kept,
            keyed_steps.windowed,
        ),
    ),
    Family.CHANGE_PLANS: Probe(
        probes.can_change_plans,
        (
            exchange_insertion.divide_inputs,
            common_watermarks.with_watermark,
            common_watermarks.with_reminder,
            common_watermarks.without_watermarks,
        ),
    ),
    Family.PLAN_QUERIES: Probe(
        probes.can_plan_queries, (plans.planned_shape, plans.streaming_refusal)
    ),
    Family.ESTIMATE_DISTINCT: Probe(
        probes.can_estimate_distinct, (distinct_counts.distinct_count_tables,)
    ),
}


def probe(spark: SparkSession) -> Mapping[Family, str]:
    """Families of handles that do not work in this session, each with the reason."""
    reasons = {family: why_unavailable(spark, family) for family in PROBES}
    return {family: reason for family, reason in reasons.items() if reason}


def why_unavailable(spark: SparkSession, *families: Family) -> str:
    """Why one of these families does not work in this session; "" if all do."""
    for family in families:
        try:
            PROBES[family].attempt(spark)
        except Unavailable as reason:
            return str(reason)
    return ""
