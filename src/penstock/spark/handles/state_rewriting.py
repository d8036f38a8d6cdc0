"""The state of a checkpoint divided anew, by what Spark has for changing the number of partitions.

The query stands still. What Spark reads and writes here is nobody's public interface.
"""

import re
from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession

from penstock.errors import PenstockError, Unavailable
from penstock.spark.handles.gateway import STREAMING, asking, gateway, java_class
from penstock.spark.handles.messages import first_line

CHECKPOINT_LOGS = f"{STREAMING}.runtime.StreamingQueryCheckpointMetadata"
REWRITER = f"{STREAMING}.state.StateRewriter"
_STORE = re.compile(r"\[operatorId=(\d+)\]")

Divide = Callable[[int, DataFrame], DataFrame]  # by operator; -1 where Spark does not say which


@asking("divide state anew")
def rewrite_state(spark: SparkSession, checkpoint: str, last_batch: int, divide: Divide) -> None:
    """Write the state after a batch anew for the next one, divided by `divide`, and commit that.

    The offsets of the next batch are there already. `divide` is called with the rows of each store;
    what it raises is raised here.
    """
    ensure_callback_server_started(gateway(spark))  # type: ignore[no-untyped-call]
    option, here = java_class(spark, "scala.Option"), spark._jsparkSession
    called = _Divide(spark, divide)
    try:
        logs = java_class(spark, CHECKPOINT_LOGS)(here, checkpoint, False)
        rewriter = java_class(spark, REWRITER)(
            here, last_batch, last_batch + 1, checkpoint, here.sessionState().newHadoopConf(),
            option.empty(), option.apply(called), option.apply(logs),
        )  # fmt: skip
        versions = rewriter.run()
    except (PySparkException, Py4JError) as error:
        raise called.refusal or Unavailable(_said(error)) from error
    commit = logs.commitLog().get(last_batch).get()
    if versions.isDefined():
        commit = commit.copy(commit.nextBatchWatermarkMs(), versions)
    if not logs.commitLog().add(last_batch + 1, commit):
        raise Unavailable(f"batch {last_batch + 1} of {checkpoint} was committed by somebody else.")


@asking("divide state into other key groups")
def repartition_state(spark: SparkSession, checkpoint: str, key_groups: int) -> None:
    """Divide the state of a checkpoint anew, by its whole keys, in a batch that is added to it."""
    spark._streamingCheckpointManager.repartition(checkpoint, key_groups)


def _said(error: Exception) -> str:
    inner = getattr(error, "java_exception", None)
    if inner is None:
        return first_line(error)
    return str(inner.getMessage()).strip().split("\n")[0]


class _Divide:
    """What Spark calls with the rows of each state store."""

    def __init__(self, session: SparkSession, divide: Divide) -> None:
        self._session, self._divide = session, divide
        self.refusal: PenstockError | None = None

    def apply(self, rows: Any) -> Any:
        """The same rows, divided."""
        found = _STORE.search(rows.queryExecution().analyzed().toString())
        operator = int(found.group(1)) if found else -1
        try:
            return self._divide(operator, DataFrame(rows, self._session))._jdf
        except PenstockError as error:
            self.refusal = error
            raise

    class Java:
        """The interface that py4j shows to Spark."""

        implements = ("scala.Function1",)
