"""Plans of queries that do not run: whether Spark takes them, and how it would run them."""

from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from penstock.spark.handles.gateway import (
    PYTHON_UTILS,
    STREAMING,
    asking,
    java_class,
    scala_object,
)
from penstock.spark.handles.physical_plan import Shape, shape_of
from penstock.spark.handles.plan_nodes import analysed


@asking("check a streaming query")
def streaming_refusal(frame: DataFrame, mode: str) -> str | None:
    """What Spark has against running a frame as one query in an output mode; None if nothing."""
    spark = frame.sparkSession
    checker = java_class(
        spark, "org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker"
    )
    try:
        checker.checkForStreaming(analysed(frame), _output_mode(spark, mode))
    except PySparkException as error:
        return str(error.getMessage() or error).strip().split("\n")[0]
    return None


@asking("plan a streaming query")
def planned_shape(frame: DataFrame, mode: str) -> Shape:
    """What a streaming frame would run as, under the session's settings now.

    It is planned over a placeholder for the sources and is not executed.
    """
    spark = frame.sparkSession
    execution = scala_object(spark, f"{STREAMING}.runtime.IncrementalExecution")
    given = [getattr(execution, f"$lessinit$greater$default${n}")() for n in range(12, 17)]
    offsets = scala_object(spark, f"{STREAMING}.checkpointing.OffsetSeqMetadata")
    begun = offsets.apply(0, 0, java_class(spark, PYTHON_UTILS).toScalaMap({}))
    watermarks = scala_object(spark, f"{STREAMING}.runtime.WatermarkPropagator").noop()
    new_id = java_class(spark, "java.util.UUID").randomUUID
    nothing = java_class(spark, "scala.Option").empty()
    made = java_class(spark, f"{STREAMING}.runtime.IncrementalExecution")(
        spark._jsparkSession, analysed(frame), _output_mode(spark, mode),
        "unknown", new_id(), new_id(), 0, nothing, begun, watermarks, False,
        *given,
    )  # fmt: skip
    return shape_of(made.executedPlan())


def _output_mode(spark: SparkSession, mode: str) -> Any:
    modes = java_class(spark, "org.apache.spark.sql.streaming.OutputMode")
    return getattr(modes, mode.capitalize())()
