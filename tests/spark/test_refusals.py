"""What Spark's streams cannot do is told in our words, with the operator and what to do instead."""

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from penstock.errors import InvalidTopology
from penstock.model.sinks import Memory
from penstock.model.topology import Topology
from penstock.spark.compile.builder import build
from penstock.spark.compile.inspection import Reading
from spark.counting import stream_topology

pytestmark = pytest.mark.spark


def timed(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("at", "1 second")


def per_key(rows: DataFrame) -> DataFrame:
    return timed(rows).groupBy("key", F.window("at", "1 second")).count()


def matched(rows: DataFrame, how: str) -> DataFrame:
    other = rows.select(F.col("key").alias("other"), F.col("value").alias("its"))
    return rows.join(other, F.col("key") == F.col("other"), how)


def table(rows: DataFrame) -> DataFrame:
    return rows.sparkSession.range(3).withColumnRenamed("id", "key")


REFUSED: list[tuple[Callable[[DataFrame], object], str, str, str]] = [
    (lambda rows: rows.groupBy("key").count(), "append", "groups rows", "mode 'update'"),
    (lambda rows: rows.orderBy("value"), "append", "sorts rows", "ForeachBatch"),
    (lambda rows: rows.limit(5), "update", "takes a part of all rows", "where("),
    (
        lambda rows: rows.withColumn(
            "place", F.row_number().over(Window.partitionBy("key").orderBy("value"))
        ),
        "append", "OVER (...)", "max_by(row, value, n)",
    ),
    (
        lambda rows: rows.groupBy("key").agg(F.countDistinct("value")),
        "update", "counts distinct values", "approx_count_distinct(column)",
    ),
    (lambda rows: matched(rows, "left"), "append", "without a match", "withWatermark("),
    (lambda rows: table(rows).join(rows, "key", "left"), "append", "with a table", "an inner join"),
    (
        lambda rows: timed(rows).groupBy("key", F.session_window("at", "1 second")).count(),
        "update", "by sessions", "mode 'append'",
    ),
    (lambda rows: rows, "complete", "groups nothing", "mode 'append'"),
    (lambda rows: rows.select("key").union(table(rows)), "append", "unites a stream", "join"),
    (lambda rows: rows.count(), "append", "asks for rows while it is declared", "Console"),
    (lambda rows: rows.cache(), "append", "is to keep them", "return a DataFrame"),
    (lambda rows: rows.groupBy("key").pivot("value").count(), "update", "(pivot)", "CASE WHEN"),
    (lambda rows: rows.dropDuplicatesWithinWatermark(["key"]), "append", "waits", "withWatermark("),
]  # fmt: skip


def refusal_of(made: Topology, session: SparkSession) -> str:
    with pytest.raises(InvalidTopology) as refusal:
        build(made, session, Reading(0.0))
    return str(refusal.value)


@pytest.mark.parametrize(("step", "mode", "why", "instead"), REFUSED)
def test_a_limit_of_streams_is_told_in_our_words(
    session: SparkSession, step: Callable[[DataFrame], DataFrame], mode: str, why: str, instead: str
) -> None:
    made = stream_topology()
    made.add("kept", "SELECT * FROM rows WHERE value > 0.1", "rows")
    made.add("wanted", step, "kept")
    made.add("after", "SELECT * FROM wanted", "wanted")
    made.sink("out", "after", Memory(), mode=mode)
    said = refusal_of(made, session)
    named = "kept" if mode == "complete" else "wanted"
    assert f"operator {named!r}" in said
    assert why in said
    assert instead in said
    assert "DataFrame/Dataset" not in said
    assert "SQLSTATE" not in said


def test_state_behind_state_names_the_operator_behind(session: SparkSession) -> None:
    made = stream_topology()
    made.add("counts", per_key, "rows")
    made.add("totals", lambda counts: counts.groupBy("window").agg(F.sum("count")), "counts")
    made.sink("out", "totals", Memory(), mode="update")
    said = refusal_of(made, session)
    assert "operator 'totals' keeps state behind other state" in said
    assert "run(apart=True)" in said


def test_what_is_no_common_limit_keeps_sparks_words(session: SparkSession) -> None:
    made = stream_topology()
    made.add("wanted", lambda rows: rows.select("key").intersect(rows.select("key")), "rows")
    made.sink("out", "wanted", Memory())
    assert "operator 'wanted': Intersect of streaming DataFrames/Datasets" in refusal_of(
        made, session
    )
