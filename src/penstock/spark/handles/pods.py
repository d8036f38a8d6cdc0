"""Pods that Kubernetes was asked for and that do not run, and what it says of them."""

from dataclasses import dataclass

from pyspark.sql import SparkSession

from penstock.spark.handles.gateway import asking, context

# Of several that Spark has, the one it uses unless told otherwise; it alone knows of single pods.
ALLOCATOR = "org.apache.spark.scheduler.cluster.k8s.ExecutorPodsAllocator"


@dataclass(frozen=True)
class PodTrouble:
    """What keeps executors from coming; nothing on a cluster that is not Kubernetes."""

    refused: int = 0  # pods that the API server would not make, since the session began
    waiting: tuple[str, ...] = ()  # why others have no machine, as the scheduler says
    lost: int = 0  # that are being deleted and take no tasks, which Spark takes for running ones


def pod_trouble(spark: SparkSession) -> PodTrouble:
    """As the driver last heard of it."""
    if not str(spark.sparkContext.master).startswith("k8s://"):
        return PodTrouble()
    with asking("see which pods wait"):
        backend = context(spark).schedulerBackend()
        field = backend.getClass().getDeclaredField("podAllocator")
        field.setAccessible(True)
        allocator = field.get(backend)
        if str(allocator.getClass().getName()) != ALLOCATOR:
            return PodTrouble()
        said: list[str] = []
        lost, pods = 0, allocator.lastSnapshot().executorPods().iterator()
        while pods.hasNext():
            found = pods.next()
            pod = found._2().pod()
            deleted = pod.getMetadata().getDeletionTimestamp() is not None
            running = pod.getStatus().getPhase() == "Running"
            lost += deleted and running and not backend.isExecutorActive(str(found._1()))
            said.extend(
                str(condition.getMessage() or condition.getReason())
                for condition in pod.getStatus().getConditions()
                if condition.getType() == "PodScheduled" and condition.getStatus() == "False"
            )
        return PodTrouble(int(allocator.totalFailedPodCreations()), tuple(said), lost)
