"""Settings of Spark that it advises against, and what it sends with every batch."""

from typing import Any

from pyspark.sql import SparkSession

from penstock.spark.handles.gateway import asking, context

STRICT = "spark.sql.streaming.statefulOperator.useStrictDistribution"


def lighten_configuration(spark: SparkSession) -> None:
    """Make Hadoop's configuration forget which file each of its settings came from.

    Whatever uses state sends all of it to the executors, twice for each operator in every batch,
    and each of some hundred sources is compressed by itself: 6 ms a time. Nobody asks for them.
    """
    with asking("forget where settings came from"):
        settings_sources(spark).clear()


def settings_sources(spark: SparkSession) -> Any:
    """Which file each of Hadoop's settings came from."""
    held = context(spark).hadoopConfiguration()
    held.size()  # reads the files, if nobody has yet
    sources = held.getClass().getDeclaredField("updatingResource")
    sources.setAccessible(True)
    return sources.get(held)
