"""Every handle of Spark that is not public, and nothing else. Written for the pinned pyspark.

They reach into the driver's JVM through py4j, where a call costs about a fifth of a millisecond,
so lists are turned into JSON over there and cross in one piece. `probe` tries each handle
without changing anything; where one does not work, whoever needs it says it is unavailable.
Every function raises Unavailable, with one sentence, when Spark does not answer as expected.
"""

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.errors import Unavailable
from penstock.model.observation import Ints

Texts = NDArray[np.str_]

_ALL = 2**31 - 1
_BLOCK = re.compile(r"\(shuffle_\d+_\d+_(\d+),(\d+),(\d+)\)")
_BATCH = re.compile(r"^batch = (\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class ExecutorInfo:
    """One executor that is registered with the driver."""

    id: str
    host: str
    cores: int
    active: bool  # takes tasks: neither draining nor excluded
    running_tasks: int
    finished_tasks: int
    failed_tasks: int
    busy_ms: int  # task time since it was added
    added_ms: int  # since the epoch


@dataclass(frozen=True)
class JobInfo:
    """One job; `batch_id` is the micro-batch it belongs to, None outside streaming."""

    id: int
    batch_id: int | None
    status: str
    stage_ids: tuple[int, ...]
    failed_tasks: int
    submitted_ms: int
    completed_ms: int | None


@dataclass(frozen=True)
class StageInfo:
    """The last attempt of one stage, with sums over its tasks."""

    id: int
    attempt: int
    name: str
    status: str
    tasks: int
    failed_tasks: int
    run_time_ms: int
    input_records: int
    shuffle_records_read: int
    shuffle_records_written: int
    submitted_ms: int | None
    completed_ms: int | None
    rdd_ids: frozenset[int]


@dataclass(frozen=True)
class TaskColumns:
    """The tasks of one stage attempt, one entry each, in order of partition and attempt."""

    partition: Ints
    executor: Texts
    status: Texts
    locality: Texts
    launched_ms: Ints
    run_time_ms: Ints
    input_records: Ints
    output_records: Ints
    shuffle_records_read: Ints
    shuffle_records_written: Ints
    shuffle_local_bytes: Ints
    shuffle_remote_bytes: Ints
    shuffle_written_bytes: Ints

    def __len__(self) -> int:
        return len(self.partition)


@dataclass(frozen=True)
class ShuffleSizes:
    """What went from map tasks to partitions in one shuffle, one entry for each pair."""

    map_task: Ints
    partition: Ints
    size_bytes: Ints


@dataclass(frozen=True)
class StateStoreKey:
    """One state store as the driver's coordinator knows it; joins have four per partition."""

    checkpoint_root: str  # the checkpoint's `state` directory as a URI
    run_id: str
    operator: int
    partition: int
    store: str = "default"


def request_total_executors(spark: SparkSession, total: int) -> None:
    """Ask the cluster manager for a number of executors in all; it removes none by itself."""
    with _asking("request executors"):
        nothing = _jvm(spark).PythonUtils.toScalaMap({})
        if not _context(spark).requestTotalExecutors(total, 0, nothing):
            raise Unavailable(f"The cluster manager refused a request for {total} executors.")


def decommission_executor(spark: SparkSession, executor_id: str) -> None:
    """Let an executor finish its tasks, take no more, and leave."""
    with _asking("decommission an executor"):
        jvm = _jvm(spark)
        info = jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo(
            "drained by Penstock", jvm.scala.Option.empty()
        )
        backend = _context(spark).schedulerBackend()
        if not backend.decommissionExecutor(executor_id, info, False, False):
            raise Unavailable(f"Executor {executor_id} cannot be drained; it may be gone already.")


def stop_allocation_manager(spark: SparkSession) -> bool:
    """Stop Spark's own dynamic allocation, lest it undo what is asked for; True if there was."""
    with _asking("stop dynamic allocation"):
        manager = _context(spark).executorAllocationManager()
        if not manager.isDefined():
            return False
        manager.get().stop()
        return True


def executors(spark: SparkSession) -> tuple[ExecutorInfo, ...]:
    """Executors that are registered now, oldest first."""
    with _asking("list executors"):
        context = _context(spark)
        backend = context.schedulerBackend()
        rows = _read(spark, context.statusStore().executorList(True))
        return tuple(
            ExecutorInfo(
                id=row["id"],
                host=row["hostPort"].rpartition(":")[0],
                cores=row["totalCores"],
                active=bool(backend.isExecutorActive(row["id"])),
                running_tasks=row["activeTasks"],
                finished_tasks=row["completedTasks"],
                failed_tasks=row["failedTasks"],
                busy_ms=row["totalDuration"],
                added_ms=row["addTime"],
            )
            for row in sorted(rows, key=lambda row: (row["addTime"], row["id"]))
            if row["id"] != "driver"
        )


def jobs_of_group(
    spark: SparkSession, group: str, after_job: int = -1
) -> tuple[JobInfo, ...]:  # fmt: skip
    """Jobs of a group with greater ids than `after_job`, oldest first.

    A streaming query's jobs are in the group named after its run id. Spark keeps the last
    `spark.ui.retainedJobs` of them.
    """
    with _asking("list jobs"):
        context, jvm = _context(spark), _jvm(spark)
        numbers = jvm.java.util.Arrays.toString(context.statusTracker().getJobIdsForGroup(group))
        wanted = sorted(number for number in json.loads(numbers) if number > after_job)
        store = context.statusStore()
        found = jvm.java.util.ArrayList()
        for number in wanted:
            found.add(store.job(number))
        return tuple(
            JobInfo(
                id=row["jobId"],
                batch_id=_batch_of(row.get("description")),
                status=row["status"],
                stage_ids=tuple(sorted(row["stageIds"])),
                failed_tasks=row["numFailedTasks"],
                submitted_ms=row.get("submissionTime", 0),
                completed_ms=row.get("completionTime"),
            )
            for row in _read(spark, found)
        )


def stages(spark: SparkSession, stage_ids: tuple[int, ...]) -> tuple[StageInfo, ...]:
    """The last attempt of each stage that ran or runs; skipped and forgotten ones are left out."""
    with _asking("list stages"):
        store, found = _context(spark).statusStore(), _jvm(spark).java.util.ArrayList()
        for number in stage_ids:
            try:
                found.add(store.lastStageAttempt(number))
            except Py4JError as error:
                if "NoSuchElementException" not in str(error):
                    raise
        return tuple(
            StageInfo(
                id=row["stageId"],
                attempt=row["attemptId"],
                name=row["name"],
                status=row["status"],
                tasks=row["numTasks"],
                failed_tasks=row["numFailedTasks"],
                run_time_ms=row["executorRunTime"],
                input_records=row["inputRecords"],
                shuffle_records_read=row["shuffleReadRecords"],
                shuffle_records_written=row["shuffleWriteRecords"],
                submitted_ms=row.get("submissionTime"),
                completed_ms=row.get("completionTime"),
                rdd_ids=frozenset(row["rddIds"]),
            )
            for row in _read(spark, found)
            if row["status"] != "SKIPPED"
        )


def stage_tasks(spark: SparkSession, stage_id: int, attempt: int = 0) -> TaskColumns:
    """The tasks of a stage attempt that have metrics, running ones with what they have so far."""
    with _asking("list tasks"):
        rows = _read(spark, _context(spark).statusStore().taskList(stage_id, attempt, _ALL))
    rows = [row for row in rows if "taskMetrics" in row]
    rows.sort(key=lambda row: (row["partitionId"], row["attempt"]))

    def numbers(value: Callable[[dict[str, Any]], int]) -> Ints:
        return np.fromiter((value(row) for row in rows), np.int64, len(rows))

    def metric(group: str, name: str) -> Ints:
        return numbers(lambda row: row["taskMetrics"][group][name])

    def texts(name: str) -> Texts:
        return np.array([row[name] for row in rows], dtype=np.str_)

    return TaskColumns(
        partition=numbers(lambda row: row["partitionId"]),
        executor=texts("executorId"),
        status=texts("status"),
        locality=texts("taskLocality"),
        launched_ms=numbers(lambda row: row["launchTime"]),
        run_time_ms=numbers(lambda row: row["taskMetrics"]["executorRunTime"]),
        input_records=metric("inputMetrics", "recordsRead"),
        output_records=metric("outputMetrics", "recordsWritten"),
        shuffle_records_read=metric("shuffleReadMetrics", "recordsRead"),
        shuffle_records_written=metric("shuffleWriteMetrics", "recordsWritten"),
        shuffle_local_bytes=metric("shuffleReadMetrics", "localBytesRead"),
        shuffle_remote_bytes=metric("shuffleReadMetrics", "remoteBytesRead"),
        shuffle_written_bytes=metric("shuffleWriteMetrics", "bytesWritten"),
    )


def state_location(spark: SparkSession, key: StateStoreKey) -> str | None:
    """Executor id that last held a state store; None when the driver knows of none."""
    with _asking("find a state store"):
        found = _coordinator(spark).getLocation(_provider_id(spark, key))
        # Given as executor_<host>_<id>, and a host may hold underscores.
        return str(found.get()).rpartition("_")[2] if found.isDefined() else None


def report_state_location(
    spark: SparkSession, key: StateStoreKey, host: str, executor_id: str
) -> None:
    """Tell the driver that a state store is at an executor: the next batch runs its task there."""
    with _asking("move a state store"):
        nothing = _jvm(spark).PythonUtils.toSeq([])
        _coordinator(spark).reportActiveInstance(
            _provider_id(spark, key), host, executor_id, nothing
        )


def active_executor_ids(spark: SparkSession) -> frozenset[str]:
    """Executors that take tasks; much quicker than `executors`."""
    with _asking("list executors"):
        backend = _context(spark).schedulerBackend()
        known = str(backend.getExecutorIds().mkString(","))
        return frozenset(one for one in known.split(",") if one and backend.isExecutorActive(one))


def checkpoint_of(query: StreamingQuery) -> str:
    """Where a running query keeps its checkpoint, as a URI."""
    with _asking("find a checkpoint"):
        return str(query._jsq.streamingQuery().resolvedCheckpointRoot())


def last_batch(query: StreamingQuery) -> int:
    """The newest batch that ended, -1 before the first; without reading all of its progress."""
    with _asking("find a query's newest batch"):
        progress = query._jsq.lastProgress()
        return -1 if progress is None else int(progress.batchId())


def last_execution(query: StreamingQuery) -> tuple[int, Any] | None:
    """The newest batch of a query that was begun, and what executes it.

    Its plan may be read when that batch has ended. Before, its lazy parts would be made by whoever
    looks, outside of the query's session, and the query would wait for it.
    """
    with _asking("find a query's plan"):
        execution = query._jsq.streamingQuery().lastExecution()
        return None if execution is None else (int(execution.currentBatchId()), execution)


def shuffle_sizes(spark: SparkSession, shuffle: int, partitions: int) -> ShuffleSizes:
    """Bytes from each map task of a shuffle to each partition; pairs without any are left out.

    Spark keeps them rounded, within some percent.
    """
    with _asking("read the sizes of a shuffle"):
        # SparkEnv has methods of classes that are not in the package, so py4j cannot look at it.
        environment = _jvm(spark).java.lang.Class.forName("org.apache.spark.SparkEnv")
        field = environment.getDeclaredField("mapOutputTracker")
        field.setAccessible(True)
        tracker = field.get(_context(spark).env())
        # The list is made into text over there, to cross in one piece.
        found = tracker.getMapSizesByExecutorId(shuffle, 0, _ALL, 0, partitions)
        blocks = _BLOCK.findall(str(found.toList().toString()))
    columns = np.array(blocks, dtype=np.int64).reshape(-1, 3)
    return ShuffleSizes(columns[:, 2], columns[:, 0], columns[:, 1])


def trigger_interval_s(query: StreamingQuery) -> float:
    """Least time between two batches of a running query; 0 where it has no such trigger."""
    with _asking("read a trigger"):
        trigger = query._jsq.streamingQuery().trigger()
        if trigger.getClass().getSimpleName() != "ProcessingTimeTrigger":
            return 0.0
        return float(trigger.intervalMs()) / 1e3


def streaming_refusal(frame: DataFrame, mode: str) -> str | None:
    """What Spark has against running a frame as one query in an output mode; None if nothing."""
    jvm = _jvm(frame.sparkSession)
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    try:
        checker.checkForStreaming(frame._jdf.queryExecution().analyzed(), _output_mode(jvm, mode))
    except PySparkException as error:
        return str(error.getMessage() or error).strip().split("\n")[0]
    return None


def failure_cause(query: StreamingQuery) -> str | None:
    """Class and message of what ended a query, from the innermost cause; None if nothing did."""
    with _asking("tell why a query ended"):
        found = query._jsq.exception()
        if found.isEmpty():
            return None
        cause = found.get()
        while cause.getCause() is not None:
            cause = cause.getCause()
        return f"{cause.getClass().getName()}: {cause.getMessage()}"


def planned_execution(frame: DataFrame, mode: str) -> Any:
    """The physical plan that a streaming frame would run by, under the session's settings now.

    It is planned over a placeholder for the sources and cannot be executed.
    """
    spark = frame.sparkSession
    jvm = _jvm(spark)
    package = "org.apache.spark.sql.execution.streaming"
    with _asking("plan a streaming query"):
        execution = _scala_object(jvm, f"{package}.runtime.IncrementalExecution")
        given = [getattr(execution, f"$lessinit$greater$default${n}")() for n in range(12, 17)]
        offsets = _scala_object(jvm, f"{package}.checkpointing.OffsetSeqMetadata")
        begun = offsets.apply(0, 0, jvm.PythonUtils.toScalaMap({}))
        watermarks = _scala_object(jvm, f"{package}.runtime.WatermarkPropagator").noop()
        new_id = jvm.java.util.UUID.randomUUID
        return jvm.org.apache.spark.sql.execution.streaming.runtime.IncrementalExecution(
            spark._jsparkSession, frame._jdf.queryExecution().analyzed(), _output_mode(jvm, mode),
            "unknown", new_id(), new_id(), 0, jvm.scala.Option.empty(), begun, watermarks, False,
            *given,
        ).executedPlan()  # fmt: skip


def rewrite_state(spark: SparkSession, checkpoint: str, last_batch: int, divide: object) -> None:
    """Write the state after a batch anew for the next one, divided by `divide`, and commit that.

    The offsets of the next batch are there already. `divide` is called with the rows of each store.
    Errors are Spark's own, for the caller to tell.
    """
    jvm = _jvm(spark)
    option, here = jvm.scala.Option, spark._jsparkSession
    package = jvm.org.apache.spark.sql.execution.streaming
    logs = package.runtime.StreamingQueryCheckpointMetadata(here, checkpoint, False)
    rewriter = package.state.StateRewriter(
        here, last_batch, last_batch + 1, checkpoint, here.sessionState().newHadoopConf(),
        option.empty(), option.apply(divide), option.apply(logs),
    )  # fmt: skip
    versions = rewriter.run()
    commit = logs.commitLog().get(last_batch).get()
    if versions.isDefined():
        commit = commit.copy(commit.nextBatchWatermarkMs(), versions)
    if not logs.commitLog().add(last_batch + 1, commit):
        raise Unavailable(f"batch {last_batch + 1} of {checkpoint} was committed by somebody else.")


def probe(spark: SparkSession) -> Mapping[str, str]:
    """Names of handles that do not work in this session, each with the reason."""
    nowhere = StateStoreKey("file:/nowhere", "00000000-0000-0000-0000-000000000000", 0, 0)
    attempts: dict[str, Callable[[], object]] = {
        "request_total_executors": lambda: _may_change_executors(spark),
        "decommission_executor": lambda: _may_decommission(spark),
        "executors": lambda: executors(spark),
        "jobs_of_group": lambda: jobs_of_group(spark, "penstock-probe"),
        "stages": lambda: stages(spark, (_ALL,)),
        "stage_tasks": lambda: stage_tasks(spark, _ALL),
        "state_location": lambda: state_location(spark, nowhere),
    }
    broken = {}
    for name, attempt in attempts.items():
        try:
            attempt()
        except Unavailable as reason:
            broken[name] = str(reason)
    return broken


def _may_change_executors(spark: SparkSession) -> None:
    master = str(spark.sparkContext.master)
    if master.startswith("local"):
        raise Unavailable(f"The master is {master}, which has no executors of its own.")
    with _asking("request executors"):
        _context(spark).schedulerBackend().getRequestedTotalExecutors()


def _may_decommission(spark: SparkSession) -> None:
    _may_change_executors(spark)
    if spark.conf.get("spark.decommission.enabled", "false") != "true":
        raise Unavailable("spark.decommission.enabled is not true, so no executor can be drained.")


def _provider_id(spark: SparkSession, key: StateStoreKey) -> Any:
    jvm = _jvm(spark)
    state = jvm.org.apache.spark.sql.execution.streaming.state
    store = state.StateStoreId(key.checkpoint_root, key.operator, key.partition, key.store)
    return state.StateStoreProviderId(store, jvm.java.util.UUID.fromString(key.run_id))


def _output_mode(jvm: Any, mode: str) -> Any:
    return getattr(jvm.org.apache.spark.sql.streaming.OutputMode, mode.capitalize())()


def _scala_object(jvm: Any, name: str) -> Any:
    return getattr(getattr(jvm, f"{name}$"), "MODULE$")


def _coordinator(spark: SparkSession) -> Any:
    return spark._jsparkSession.sessionState().streamingQueryManager().stateStoreCoordinator()


def _context(spark: SparkSession) -> Any:
    return spark.sparkContext._jsc.sc()


def _jvm(spark: SparkSession) -> Any:
    return spark.sparkContext._jvm


def _read(spark: SparkSession, objects: Any) -> list[dict[str, Any]]:
    """Objects of Spark's status interface, through the writer of its own REST pages.

    They cross in a private file: a py4j answer of more than some kilobytes waits 40 ms for a
    delayed acknowledgement.
    """
    jvm = _jvm(spark)
    with tempfile.NamedTemporaryFile(prefix="penstock-status-") as file:
        _writer(jvm).writeValue(jvm.java.io.File(file.name), objects)
        rows: list[dict[str, Any]] = json.load(file)
    return rows


@lru_cache(maxsize=1)
def _writer(jvm: Any) -> Any:
    mapper = jvm.org.apache.spark.status.api.v1.JacksonMessageWriter().mapper()
    mapper.setDateFormat(None)  # times as numbers: milliseconds since the epoch
    feature = jvm.com.fasterxml.jackson.databind.SerializationFeature
    mapper.disable(feature.INDENT_OUTPUT)
    maps = jvm.java.lang.Class.forName("scala.collection.immutable.Map")
    mapper.configOverride(maps).setIsIgnoredType(True)  # links to logs in every single row
    return mapper


def _batch_of(description: str | None) -> int | None:
    found = _BATCH.search(description or "")
    return int(found.group(1)) if found else None


@contextmanager
def _asking(what: str) -> Iterator[None]:
    """Turn whatever a missing or changed handle raises into one sentence."""
    try:
        yield
    except (Py4JError, AttributeError, KeyError, TypeError, ValueError, OSError) as error:
        reason = str(error).strip().split("\n")[0]
        raise Unavailable(f"Spark could not {what}: {reason or type(error).__name__}.") from error
