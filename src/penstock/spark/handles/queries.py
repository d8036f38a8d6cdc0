"""Streaming queries: what they report, where they keep it, and why they ended."""

from collections.abc import Callable
from typing import Any, ClassVar

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.spark.handles.gateway import asking, gateway, java_class

LISTENER = "org.apache.spark.sql.streaming.PythonStreamingQueryListener"


def checkpoint_of(query: StreamingQuery) -> str:
    """Where a running query keeps its checkpoint, as a URI."""
    with asking("find a checkpoint"):
        return str(query._jsq.streamingQuery().resolvedCheckpointRoot())


def checkpoint_of_id(spark: SparkSession, query_id: str) -> str | None:
    """The same, for the query of an id that runs in any session; None where none does.

    A batch is handed on in a session of its own, whose manager of queries knows of none.
    """
    with asking("find a checkpoint by its query's id"):
        known = spark._jsparkSession.sharedState().activeStreamingQueries()
        found = known.get(java_class(spark, "java.util.UUID").fromString(query_id))
        return None if found is None else str(found.resolvedCheckpointRoot())


def last_batch(query: StreamingQuery) -> int:
    """The newest batch that ended, -1 before the first; without reading all of its progress.

    A trigger that finds nothing is in the progress as well, under the number of the next batch.
    """
    with asking("find a query's newest batch"):
        progress = query._jsq.lastProgress()
        if progress is None:
            return -1
        return int(progress.batchId()) - (not progress.durationMs().containsKey("addBatch"))


def trigger_interval_s(query: StreamingQuery) -> float:
    """Least time between two batches of a running query; 0 where it has no such trigger."""
    with asking("read a trigger"):
        trigger = query._jsq.streamingQuery().trigger()
        if trigger.getClass().getSimpleName() != "ProcessingTimeTrigger":
            return 0.0
        return float(trigger.intervalMs()) / 1e3


def failure_causes(query: StreamingQuery) -> list[str]:
    """Class and message of what ended a query and of what caused that; none if nothing did."""
    with asking("say why a query ended"):
        found = query._jsq.exception()
        cause = None if found.isEmpty() else found.get()
        said = []
        while cause is not None:
            said.append(f"{cause.getClass().getName()}: {cause.getMessage()}")
            cause = cause.getCause()
        return said


def follow_progress(spark: SparkSession, heard: Callable[[str], None]) -> Callable[[], None]:
    """Have `heard` called with each batch's progress as JSON; what is given back ends that.

    A listener of PySpark's gets a Python object of each event: a hundred calls into the JVM, and
    for each metric observed a class looked for in every jar. On a busy driver that took 65 ms of a
    core in every batch.
    """
    with asking("report a query's batches"):
        ensure_callback_server_started(gateway(spark))  # type: ignore[no-untyped-call]
        listeners = spark.streams._jsqm
        made = java_class(spark, f"{LISTENER}Wrapper")(_Listener(heard))
        listeners.addListener(made)

    def end() -> None:
        listeners.removeListener(made)

    return end


class _Listener:
    """What the JVM calls; the names are Spark's."""

    def __init__(self, heard: Callable[[str], None]) -> None:
        self._heard = heard

    def onQueryStarted(self, event: Any) -> None:
        """Nothing to report."""

    def onQueryProgress(self, event: Any) -> None:
        """A batch ended."""
        self._heard(str(event.progress().json()))

    def onQueryIdle(self, event: Any) -> None:
        """Nothing to report."""

    def onQueryTerminated(self, event: Any) -> None:
        """Nothing to report: whoever started the query asks it."""

    class Java:
        """The interface, for py4j."""

        implements: ClassVar = [LISTENER]
