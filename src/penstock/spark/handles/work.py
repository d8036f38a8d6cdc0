"""Jobs, stages, tasks and shuffles: what Spark keeps in memory of the work it did."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from penstock.model.observation import Ints
from penstock.spark.handles.gateway import asking, context, java_class, read

Texts = NDArray[np.str_]

ALL = 2**31 - 1
LIST = "java.util.ArrayList"
_BLOCK = re.compile(r"\(shuffle_\d+_\d+_(\d+),(\d+),(\d+)\)")
_BATCH = re.compile(r"^batch = (\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class JobInfo:
    """One job; `batch_id` is the micro-batch it belongs to, None outside streaming."""

    id: int
    batch_id: int | None
    status: str
    stage_ids: tuple[int, ...]
    completed_ms: int | None


@dataclass(frozen=True)
class StageInfo:
    """The last attempt of one stage, with sums over its tasks."""

    id: int
    attempt: int
    name: str
    status: str
    tasks: int
    run_time_ms: int
    input_records: int
    shuffle_records_read: int
    shuffle_records_written: int
    shuffle_bytes_written: int
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
    duration_ms: Ints  # from its launch until the driver has its result
    run_time_ms: Ints
    cpu_time_ns: Ints  # of the task's thread, without Python workers
    input_records: Ints
    shuffle_records_read: Ints
    shuffle_records_written: Ints
    shuffle_local_bytes: Ints
    shuffle_remote_bytes: Ints
    shuffle_written_bytes: Ints
    fetch_wait_ms: Ints  # for blocks of other hosts

    def __len__(self) -> int:
        return len(self.partition)


@dataclass(frozen=True)
class ShuffleSizes:
    """What went from map tasks to partitions in one shuffle, one entry for each pair."""

    map_task: Ints
    partition: Ints
    size_bytes: Ints


def jobs_of_group(
    spark: SparkSession, group: str, after_job: int = -1
) -> tuple[JobInfo, ...]:  # fmt: skip
    """Jobs of a group with greater ids than `after_job`, oldest first.

    A streaming query's jobs are in the group named after its run id. Spark keeps the last
    `spark.ui.retainedJobs` of them.
    """
    with asking("list jobs"):
        ids = context(spark).statusTracker().getJobIdsForGroup(group)
        numbers = java_class(spark, "java.util.Arrays").toString(ids)
        wanted = sorted(number for number in json.loads(numbers) if number > after_job)
        store, found = context(spark).statusStore(), java_class(spark, LIST)()
        for number in wanted:
            found.add(store.job(number))
        return tuple(
            JobInfo(
                id=row["jobId"],
                batch_id=_batch_of(row.get("description")),
                status=row["status"],
                stage_ids=tuple(sorted(row["stageIds"])),
                completed_ms=row.get("completionTime"),
            )
            for row in read(spark, found)
        )


def stages(spark: SparkSession, stage_ids: tuple[int, ...]) -> tuple[StageInfo, ...]:
    """The last attempt of each stage that ran or runs; skipped and forgotten ones are left out."""
    with asking("list stages"):
        store, found = context(spark).statusStore(), java_class(spark, LIST)()
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
                run_time_ms=row["executorRunTime"],
                input_records=row["inputRecords"],
                shuffle_records_read=row["shuffleReadRecords"],
                shuffle_records_written=row["shuffleWriteRecords"],
                shuffle_bytes_written=row["shuffleWriteBytes"],
                completed_ms=row.get("completionTime"),
                rdd_ids=frozenset(row["rddIds"]),
            )
            for row in read(spark, found)
            if row["status"] != "SKIPPED"
        )


def stage_tasks(spark: SparkSession, stage_id: int, attempt: int = 0) -> TaskColumns:
    """The tasks of a stage attempt that have metrics, running ones with what they have so far."""
    with asking("list tasks"):
        rows = read(spark, context(spark).statusStore().taskList(stage_id, attempt, ALL))
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
        duration_ms=numbers(lambda row: row.get("duration") or 0),
        run_time_ms=numbers(lambda row: row["taskMetrics"]["executorRunTime"]),
        cpu_time_ns=numbers(lambda row: row["taskMetrics"]["executorCpuTime"]),
        input_records=metric("inputMetrics", "recordsRead"),
        shuffle_records_read=metric("shuffleReadMetrics", "recordsRead"),
        shuffle_records_written=metric("shuffleWriteMetrics", "recordsWritten"),
        shuffle_local_bytes=metric("shuffleReadMetrics", "localBytesRead"),
        shuffle_remote_bytes=metric("shuffleReadMetrics", "remoteBytesRead"),
        shuffle_written_bytes=metric("shuffleWriteMetrics", "bytesWritten"),
        fetch_wait_ms=metric("shuffleReadMetrics", "fetchWaitTime"),
    )


def shuffle_sizes(spark: SparkSession, shuffle: int, partitions: int) -> ShuffleSizes | None:
    """Bytes from each map task of a shuffle to each partition; pairs without any are left out.

    Spark keeps them rounded, within some percent. None if it does not have all of them any more, as
    an executor was lost: asked for them, it would log an error and raise.
    """
    with asking("read the sizes of a shuffle"):
        tracker = map_output_tracker(spark)
        missing = tracker.findMissingPartitions(shuffle)
        if missing.isEmpty() or not missing.get().isEmpty():
            return None
        # The list is made into text over there, to cross in one piece.
        found = tracker.getMapSizesByExecutorId(shuffle, 0, ALL, 0, partitions)
        blocks = _BLOCK.findall(str(found.toList().toString()))
    columns = np.array(blocks, dtype=np.int64).reshape(-1, 3)
    return ShuffleSizes(columns[:, 2], columns[:, 0], columns[:, 1])


def map_output_tracker(spark: SparkSession) -> Any:
    """What keeps the sizes of shuffles."""
    # SparkEnv has methods of classes that are not in the package, so py4j cannot look at it.
    environment = java_class(spark, "java.lang.Class").forName("org.apache.spark.SparkEnv")
    field = environment.getDeclaredField("mapOutputTracker")
    field.setAccessible(True)
    return field.get(context(spark).env())


def _batch_of(description: str | None) -> int | None:
    found = _BATCH.search(description or "")
    return int(found.group(1)) if found else None
