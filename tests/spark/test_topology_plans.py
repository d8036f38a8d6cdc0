"""Topologies on Spark before they run: what is refused, and what is planned."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.errors import InvalidTopology
from penstock.model.plan import Component, QueryPlan, TopologyPlan
from penstock.model.sinks import Memory
from penstock.model.topology import Topology
from penstock.spark.compile.builder import build
from penstock.spark.compile.inspection import Reading
from penstock.spark.run.together import RunningTopology
from spark.counting import (
    ONCE,
    ROWS,
    STREAM,
    counted,
    stream_topology,
)
from spark.run_to import LIMIT_S

pytestmark = pytest.mark.spark

KEY_GROUPS = 2


# What is refused


def test_an_operator_must_return_a_dataframe(session: SparkSession) -> None:
    made = stream_topology()
    made.add("bad", lambda rows: None, "rows")
    made.sink("out", "bad", Memory())
    with pytest.raises(InvalidTopology, match="operator 'bad': function returned nothing"):
        build(made, session, Reading(0.0))


def test_an_operator_that_raises_is_named(session: SparkSession) -> None:
    made = stream_topology()
    made.add("bad", lambda rows: rows.select("speed"), "rows")
    made.sink("out", "bad", Memory())
    with pytest.raises(InvalidTopology, match=r"operator 'bad': function: .*speed"):
        build(made, session, Reading(0.0))


def test_a_source_must_be_streaming(session: SparkSession) -> None:
    made = Topology("made", max_latency="5s")
    made.source("rows", lambda spark: spark.range(5))
    made.sink("out", "rows", Memory())
    with pytest.raises(InvalidTopology, match="source 'rows': reader returned a DataFrame that is"):
        build(made, session, Reading(0.0))


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("speed", "key column 'speed' is not in the schema of its upstream rows"),
        ("value", "key 'value' contradicts its plan, which groups by key, window"),
    ],
)
def test_keys_are_checked_against_the_plan(session: SparkSession, key: str, words: str) -> None:
    made = stream_topology()
    made.add("counts", counted, "rows", key=key)
    made.sink("out", "counts", Memory())
    with pytest.raises(InvalidTopology) as refusal:
        build(made, session, Reading(0.0))
    assert f"operator 'counts': {words}" in str(refusal.value)


def test_a_mode_that_spark_cannot_do_is_refused(session: SparkSession) -> None:
    made = stream_topology()
    made.add("counts", lambda rows: rows.groupBy("key").count(), "rows")
    made.sink("out", "counts", Memory())
    with pytest.raises(InvalidTopology, match="sink 'out': mode 'append'"):
        build(made, session, Reading(0.0))


def test_another_schema_on_an_old_checkpoint_is_refused(
    session: SparkSession, tmp_path: Path
) -> None:
    for column in ("value", "row"):
        made = stream_topology()
        made.add("chosen", lambda rows, column=column: rows.select(column), "rows")
        made.sink("out", "chosen", Memory())
        running = RunningTopology(made, session, tmp_path / "c", ONCE)
        if column == "value":
            with running:
                assert running.wait(LIMIT_S)
        else:
            with pytest.raises(InvalidTopology, match="operator 'chosen': schema was struct<value"):
                running.__enter__()


# Keys and components


def keys_of(session: SparkSession, step: Any, **more: Any) -> tuple[str, ...]:
    made = stream_topology()
    made.add("step", step, "rows", **more)
    made.sink("out", "step", Memory())
    return build(made, session, Reading(0.0)).plan.component_of("step").key


def test_keys_are_inferred_from_the_analysed_plan(session: SparkSession) -> None:
    assert keys_of(session, counted) == ("key", "window")
    assert keys_of(session, lambda rows: rows.where("value > 0.5")) == ()

    def distinct(rows: DataFrame) -> DataFrame:
        return rows.withWatermark("at", "1 second").dropDuplicatesWithinWatermark(["row"])

    assert keys_of(session, distinct) == ("row",)
    assert keys_of(session, counted, key="key") == ("key",)


def test_join_keys_are_inferred(session: SparkSession) -> None:
    made = Topology("joined", max_latency="5s")
    made.source("left_rows", STREAM)
    made.source("right_rows", STREAM)

    @made.operator(["left_rows", "right_rows"])
    def joined(left: DataFrame, right: DataFrame) -> DataFrame:
        timed = left.withWatermark("at", "1 second").alias("l")
        other = right.withWatermark("at", "1 second").select(F.col("key").alias("k"), "at")
        near = F.expr("key = k AND r.at >= l.at AND r.at <= l.at + INTERVAL 1 SECOND")
        return timed.join(other.alias("r"), near).select("key", "value")

    made.sink("out", "joined", Memory())
    plan = build(made, session, Reading(0.0)).plan
    assert set(plan.component_of("joined").key) == {"key", "k"}


def test_stateless_operators_run_with_their_upstream(session: SparkSession) -> None:
    made = stream_topology()
    made.add("fast", "SELECT * FROM rows WHERE value > 0.5", "rows")
    made.add("counts", counted, "fast")
    made.add("named", "SELECT key, n FROM counts", "counts")
    made.sink("out", "named", Memory())
    (query,) = build(made, session, Reading(0.0)).plan.queries
    assert [(c.name, c.operators) for c in query.components] == [
        ("rows", ("fast",)),
        ("counts", ("counts", "named")),
    ]


def test_a_declared_key_brings_equal_keys_together(session: SparkSession, tmp_path: Path) -> None:
    def numbered(batches: Iterator[Any]) -> Iterator[Any]:
        import os

        for batch in batches:
            frame = batch.to_pandas().assign(worker=f"{os.getpid()}-{id(batches)}")
            yield type(batch).from_pandas(frame[["key", "worker"]], preserve_index=False)

    made = stream_topology()
    made.add(
        "seen",
        lambda rows: rows.mapInArrow(numbered, "key BIGINT, worker STRING"),
        "rows",
        key="key",
    )
    made.sink("out", "seen", Memory())
    with RunningTopology(made, session, tmp_path / "c", ONCE) as running:
        assert running.wait(LIMIT_S)
        (plan,) = running.built.plan.queries
        assert plan.components[1].key == ("key",)
        rows = running.rows("out")
        assert len(rows) == ROWS
        # Two batches of two tasks each: a key that were not kept together would meet all four.
        tasks = Counter(key for key, _ in {(row.key, row.worker) for row in rows})
        assert max(tasks.values()) <= 2


def two_sinks() -> Topology:
    made = stream_topology()
    made.add("counts", counted, "rows")
    made.sink("raw", "rows", Memory())
    made.sink("out", "counts", Memory())
    return made


def test_a_given_plan_is_obeyed(session: SparkSession) -> None:
    reading, counting = Component("rows", ()), Component("counts", ("counts",), ("key",))
    wanted = TopologyPlan(
        (
            QueryPlan("first", (reading,), ("raw",)),
            QueryPlan("second", (reading, counting), ("out",)),
        )
    )
    built = build(two_sinks(), session, Reading(0.0), wanted)
    first, second = built.queries
    assert (first.tagged, first.frame.columns) == (False, ["row", "key", "value", "at"])
    assert (second.tagged, second.frame.columns) == (False, ["key", "window", "n"])


@pytest.mark.parametrize(
    ("queries", "words"),
    [
        ([QueryPlan("q", (), ("raw",))], "sink 'out' is in 0 queries"),
        ([QueryPlan("q", (), ("raw", "out", "more"))], "sink 'more' is unknown"),
        ([QueryPlan("q", (), ("raw", "out"), "update")], "query 'q' has mode 'update'"),
        (
            [QueryPlan("q", (Component("c", ("counts",), ("value",)),), ("raw", "out"))],
            "component 'c': key 'value' contradicts operator 'counts'",
        ),
        ([QueryPlan("q", (Component("c", ("lost",)),), ("raw", "out"))], "operator 'lost' is"),
        ([QueryPlan("q", (), ("raw", "out"))], "leaves operator 'counts' out"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused(
    session: SparkSession, queries: list[QueryPlan], words: str
) -> None:
    with pytest.raises(InvalidTopology) as refusal:
        build(two_sinks(), session, Reading(0.0), TopologyPlan(tuple(queries)))
    assert words in str(refusal.value)
