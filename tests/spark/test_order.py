"""Stateless operators carried out in another order than declared: the same rows, less work."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DoubleType, StructField, StructType

from penstock.model.sinks import Memory
from penstock.model.topology import Topology
from penstock.spark.compile.builder import build
from penstock.spark.compile.fused import PlanChoice
from penstock.spark.compile.inspection import Reading
from penstock.spark.run.together import Pace, RunningTopology
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant
from spark.run_to import run_to

pytestmark = pytest.mark.spark

KEY_GROUPS = 2

STREAM = Generator(constant(1000.0), keys=50, seed=4, rows=4000, lanes=2, max_rows=500)
ORDER = ("few", "doubled", "named")


def topology() -> Topology:
    """doubled > named > few, then counts; both the run's end and the counts go to sinks."""
    made = Topology("steps", max_latency="60s")
    made.source("rows", STREAM)

    @made.operator("rows", reads=["value"], writes=["twice"])
    def doubled(rows: DataFrame) -> DataFrame:
        def double(batches: Any) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                twice = pc.multiply(batch["value"], 2.0)
                yield batch.append_column("twice", twice)

        wider = StructType([*rows.schema.fields, StructField("twice", DoubleType())])
        return rows.mapInArrow(double, wider)

    made.add("named", "SELECT *, concat('k', key) AS name FROM doubled", "doubled")
    made.add("few", "SELECT * FROM named WHERE key % 10 = 0", "named")

    @made.operator("few")
    def counts(few: DataFrame) -> DataFrame:
        text = """SELECT name, window.start AS since, count(*) AS n, round(sum(twice), 6) AS twice
                  FROM {timed} GROUP BY name, window(at, '1 second')"""
        return few.sparkSession.sql(text, timed=few.withWatermark("at", "1 second"))

    made.sink("all_few", "few", Memory())
    made.sink("counted", "counts", Memory())
    return made


def expected(checkpoint: Path) -> tuple[Counter[Any], Counter[Any]]:
    epoch_s = json.loads((checkpoint / "penstock/epoch.json").read_text())["epoch_s"]
    rows = STREAM.batch(0, STREAM.rows or 0, epoch_s).to_pandas()
    latest = rows["at"].max().floor("1ms")
    few = rows[rows["key"] % 10 == 0].assign(since=rows["at"].dt.floor("1s"))
    closed = few[(latest - few["since"]).dt.total_seconds() >= 2]
    found = closed.groupby(["key", "since"]).agg(n=("key", "size"), value=("value", "sum"))
    counted = Counter(
        {(f"k{k}", s.timestamp(), int(r.n), round(2 * r.value, 6)): 1
         for (k, s), r in found.iterrows()}
    )  # fmt: skip
    return Counter(few["row"].tolist()), counted


def run(session: SparkSession, checkpoint: Path, choice: PlanChoice, batches: int | None) -> Any:
    """What was read, told and built by a run over all batches, or up to a number."""
    pace = Pace(once=batches is None)
    with RunningTopology(topology(), session, checkpoint, pace, choice=choice) as running:
        run_to(running, batches)
        metrics = running.queries[0].lastProgress.observedMetrics
    few = Counter(row.row for row in running.rows("all_few"))
    counted = Counter(
        (row["name"], row.since.timestamp(), row.n, row.twice) for row in running.rows("counted")
    )
    return few, counted, running.built, metrics


@pytest.mark.long
def test_an_order_is_taken_up_between_batches_of_the_same_rows(
    session: SparkSession, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "c"
    few, counted, built, _ = run(session, checkpoint, PlanChoice(()), batches=1)
    assert built.orders == ()
    wanted = PlanChoice(None, apply=True, orders=(ORDER,))
    for choice, batches in ((wanted, 3), (PlanChoice(), None)):  # then as the checkpoint has it
        more, counts, built, metrics = run(session, checkpoint, choice, batches)
        assert built.orders == (ORDER,)
        few, counted = few + more, counted + counts
        if batches:
            rows = {name.split(":")[1].split(">")[0]: m["rows"] for name, m in metrics.items()}
            assert rows["doubled"] == rows["few"] < (STREAM.max_rows or 0)
    assert (few, counted) == expected(checkpoint)


def test_what_does_not_commute_keeps_its_order(session: SparkSession) -> None:
    reader = Topology("reader", max_latency="60s")
    reader.source("rows", STREAM)
    reader.add("added", "SELECT *, value + 1 AS more FROM rows", "rows")
    reader.add("chosen", "SELECT * FROM added WHERE more > 1.5", "added")
    reader.sink("out", "chosen", Memory())
    built = build(reader, session, Reading(0.0), None, (("chosen", "added"),))
    assert built.orders == ()
    assert "added and chosen use each other's columns" in built.notes[0]
    unknown = build(reader, session, Reading(0.0), None, (("added", "gone"),))
    assert "added > gone is not of a run" in unknown.notes[0]


def test_an_order_that_would_change_the_columns_is_not_taken_up(session: SparkSession) -> None:
    made = Topology("named_columns", max_latency="60s")
    made.source("rows", STREAM)
    made.add("chosen", "SELECT key, value, at FROM rows", "rows")
    made.add("added", "SELECT *, value + 1 AS more FROM chosen", "chosen")
    made.sink("out", "added", Memory())
    built = build(made, session, Reading(0.0), None, (("added", "chosen"),))
    assert built.orders == ()
    assert "order kept as declared" in built.notes[0]
