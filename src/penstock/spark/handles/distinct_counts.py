"""The tables by which Spark corrects its approximate counts of distinct values."""

from dataclasses import dataclass

from pyspark.sql import SparkSession

from penstock.spark.handles.gateway import asking, java_class

_TABLES = "org.apache.spark.sql.catalyst.util.HyperLogLogPlusPlusHelper"
LEAST_PRECISION = 4


@dataclass(frozen=True)
class DistinctCountTables:
    """Of HyperLogLog++ with one precision."""

    threshold: float
    raw_estimates: tuple[float, ...]
    biases: tuple[float, ...]


@asking("say how it estimates distinct values")
def distinct_count_tables(spark: SparkSession, precision: int) -> DistinctCountTables:
    """The tables for 2 to the power of `precision` registers."""
    tables, place = java_class(spark, _TABLES), precision - LEAST_PRECISION
    return DistinctCountTables(
        float(tables.THRESHOLDS()[place]),
        tuple(map(float, tables.RAW_ESTIMATE_DATA()[place])),
        tuple(map(float, tables.BIAS_DATA()[place])),
    )
