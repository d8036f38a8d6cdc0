"""A checkpoint goes on with the same operators, and refuses others that would mix results."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock import Generator, Memory, Topology, constant, window_aggregate
from penstock.errors import InvalidTopology
from penstock.spark.compile.inspection import Reading, inspect_topology
from penstock.spark.run.together import Pace, RunningTopology

pytestmark = pytest.mark.spark
KEY_GROUPS = 2
ONCE = Pace(once=True)


def road(step: str | Callable[..., Any], late: str = "1 second") -> Topology:
    made = Topology("road", max_latency="5s")
    made.source("rows", Generator(constant(100.0), rows=50))
    made.add("moving", lambda rows: rows.withWatermark("at", late), "rows")
    made.add("counts", step, "moving")  # type: ignore[arg-type]
    made.sink("out", "counts", Memory())
    return made


def by_window(seconds: int, what: str = "count(*)") -> str:
    return f"SELECT key, {what} AS n FROM moving GROUP BY key, window(at, '{seconds} seconds')"


def state_text(session: SparkSession, made: Topology, operator: str = "counts") -> str:
    return inspect_topology(made, session, Reading(0.0)).operators[operator].state_text


def test_the_same_program_has_the_same_text_and_others_have_not(session: SparkSession) -> None:
    def joined(rows: DataFrame) -> DataFrame:
        other = rows.select(F.col("key").alias("k2"), F.col("at").alias("at2"))
        return rows.join(other, F.expr("key = k2 AND at2 BETWEEN at AND at + INTERVAL 2 SECONDS"))

    def listed(rows: DataFrame) -> DataFrame:
        values = F.transform(F.array("value"), lambda x: x + 1)
        return rows.groupBy("key", F.window("at", "2 seconds")).agg(F.max(values[0]).alias("m"))

    texts = [by_window(2), by_window(3), by_window(2, "sum(value)"), joined, listed]
    first = [state_text(session, road(step)) for step in texts]
    assert first == [state_text(session, road(step)) for step in texts]
    assert len(set(first)) == len(texts)
    late = [state_text(session, road(texts[0], f"{n} seconds"), "moving") for n in (1, 2)]
    assert late[0] != late[1]


def test_a_changed_window_is_refused_and_the_same_one_goes_on(
    session: SparkSession, tmp_path: Path
) -> None:
    for accept, seconds in ((False, 2), (True, 3), (False, 3)):
        made = road(by_window(seconds))
        with RunningTopology(made, session, tmp_path, ONCE, accept_changes=accept) as running:
            running.wait(120)
    changed = RunningTopology(road(by_window(4)), session, tmp_path, ONCE)
    with pytest.raises(InvalidTopology, match="operator 'counts' computes its state differently"):
        changed.__enter__()
    late = RunningTopology(road(by_window(3), "9 seconds"), session, tmp_path, ONCE)
    with pytest.raises(InvalidTopology, match="operator 'moving' computes its state differently"):
        late.__enter__()


def test_state_behind_windows_of_rows_is_refused_in_our_words(
    session: SparkSession, tmp_path: Path
) -> None:
    def slid(rows: DataFrame) -> DataFrame:
        return window_aggregate(
            rows, by="key", window=4, slide=1, aggregates={"n": "count"}, time="at"
        )

    made = Topology("road", max_latency="5s")
    made.source("rows", Generator(constant(100.0), rows=50))
    made.add("moving", lambda rows: rows.withWatermark("at", "1 second"), "rows")
    made.add("slid", slid, "moving")
    made.add("total", lambda rows: rows.groupBy("n").count(), "slid")
    made.sink("out", "total", Memory())
    with pytest.raises(InvalidTopology) as error:
        RunningTopology(made, session, tmp_path, ONCE).__enter__()
    assert str(error.value).startswith("operator 'total' keeps state behind operator 'slid', whose")
