"""Executors: how many there are and what they did, more of them, fewer of them."""

from dataclasses import dataclass

from pyspark.sql import SparkSession

from penstock.errors import Unavailable
from penstock.spark.handles.gateway import PYTHON_UTILS, asking, context, java_class, read


@dataclass(frozen=True)
class ExecutorInfo:
    """One executor that is registered with the driver."""

    id: str
    host: str
    cores: int
    active: bool  # takes tasks: neither draining nor excluded
    busy_ms: int  # task time since it was added
    gc_ms: int  # of it, for garbage collection
    memory_bytes: int  # of its heap, for tasks and what they keep


def request_total_executors(spark: SparkSession, total: int) -> None:
    """Ask the cluster manager for a number of executors in all; it removes none by itself."""
    with asking("request executors"):
        nothing = java_class(spark, PYTHON_UTILS).toScalaMap({})
        if not context(spark).requestTotalExecutors(total, 0, nothing):
            raise Unavailable(f"The cluster manager refused a request for {total} executors.")


def decommission_executor(spark: SparkSession, executor_id: str) -> None:
    """Let an executor finish its tasks, take no more, and leave."""
    with asking("decommission an executor"):
        decommission = java_class(spark, "org.apache.spark.scheduler.ExecutorDecommissionInfo")
        info = decommission("drained by Penstock", java_class(spark, "scala.Option").empty())
        backend = context(spark).schedulerBackend()
        if not backend.decommissionExecutor(executor_id, info, False, False):
            raise Unavailable(f"Executor {executor_id} cannot be drained; it may be gone already.")


def stop_allocation_manager(spark: SparkSession) -> bool:
    """Stop Spark's own dynamic allocation, lest it undo what is asked for; True if there was."""
    with asking("stop dynamic allocation"):
        manager = context(spark).executorAllocationManager()
        if not manager.isDefined():
            return False
        manager.get().stop()
        return True


def executors(spark: SparkSession) -> tuple[ExecutorInfo, ...]:
    """Executors that are registered now, oldest first."""
    with asking("list executors"):
        backend = context(spark).schedulerBackend()
        rows = read(spark, context(spark).statusStore().executorList(True))
        return tuple(
            ExecutorInfo(
                id=row["id"],
                host=_host_of(row["hostPort"]),
                cores=row["totalCores"],
                active=bool(backend.isExecutorActive(row["id"])),
                busy_ms=row["totalDuration"],
                gc_ms=row["totalGCTime"],
                memory_bytes=row["maxMemory"],
            )
            for row in sorted(rows, key=lambda row: (row["addTime"], row["id"]))
            if row["id"] != "driver"
        )


def _host_of(address: str) -> str:
    """The host of an executor's address, which has no port until its blocks are known.

    >>> _host_of("10.0.0.7:41234"), _host_of("10.0.0.7"), _host_of("[::1]:7"), _host_of("[::1]")
    ('10.0.0.7', '10.0.0.7', '[::1]', '[::1]')
    """
    host, _, port = address.rpartition(":")
    return host if port.isdigit() and host else address


def active_executor_ids(spark: SparkSession) -> frozenset[str]:
    """Executors that take tasks; much quicker than `executors`."""
    with asking("list executors"):
        backend = context(spark).schedulerBackend()
        known = str(backend.getExecutorIds().mkString(","))
        return frozenset(one for one in known.split(",") if one and backend.isExecutorActive(one))
