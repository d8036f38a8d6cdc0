"""How much code the driver's JVM has generated and compiled since it started."""

from pyspark.sql import SparkSession

from penstock.model.compiled import Compiled
from penstock.spark.handles.gateway import asking, java_class

_CODE = "org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator"
_METRICS = "org.apache.spark.metrics.source.CodegenMetrics"


def compiled_code(spark: SparkSession) -> Compiled:
    """Classes compiled in this JVM, by all its sessions, and the time of all threads that did it.

    With a local master that is all there is. On a cluster the driver compiles the code of each
    stage as well as the executors do, which compile what writes their shuffles besides.
    """
    with asking("count what it has compiled"):
        count = java_class(spark, _METRICS).METRIC_COMPILATION_TIME().getCount()
        return Compiled(int(count), java_class(spark, _CODE).compileTime() / 1e9)
