"""What a standalone master says of its workers: how large they are and how much of them is free."""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from penstock.spark.handles.gateway import asking, context, java_class

MESSAGES = "org.apache.spark.deploy.DeployMessages"
ANSWER = f"{MESSAGES}$MasterStateResponse"
WORKER = "org.apache.spark.deploy.master.WorkerInfo"
NAME = "Master"  # of the master's endpoint
ALIVE = "ALIVE"


@dataclass(frozen=True)
class WorkerInfo:
    """One worker that is registered with a master and alive."""

    slots: int
    free_slots: int
    memory_mb: int
    free_memory_mb: int


def standalone_workers(spark: SparkSession, host: str, port: int) -> tuple[WorkerInfo, ...]:
    """The workers of the master at an address, asked as its own web page asks it."""
    with asking("ask the master for its workers"):
        address = java_class(spark, "org.apache.spark.rpc.RpcAddress")(host, port)
        master = context(spark).env().rpcEnv().setupEndpointRef(address, NAME)
        question = _singleton(spark, f"{MESSAGES}$RequestMasterState$")
        anything = _singleton(spark, "scala.reflect.ClassTag$").Any()
        answer = master.askSync(question, anything)
        return tuple(
            WorkerInfo(
                int(worker.cores()),
                int(worker.coresFree()),
                int(worker.memory()),
                int(worker.memoryFree()),
            )
            for worker in answer.workers()
            if str(worker.state().toString()) == ALIVE
        )


def _singleton(spark: SparkSession, name: str) -> Any:
    """An object of Scala by the name of its class."""
    return getattr(java_class(spark, name), "MODULE$")
