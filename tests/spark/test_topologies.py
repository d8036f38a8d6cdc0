"""Topologies on Spark: what runs equals a batch over the same rows."""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.errors import InvalidTopology, PenstockError
from penstock.model.sinks import Console, Files, ForeachBatch, Memory
from penstock.model.topology import Topology
from penstock.spark import handles
from penstock.spark.checkpoint.durable_files import write_atomically
from penstock.spark.compile.builder import build
from penstock.spark.compile.inspection import Reading
from penstock.spark.routes.reading import RoutedReading
from penstock.spark.run import together
from penstock.spark.run.together import RunningTopology
from penstock.spark.sources.generator_source import GeneratorReader, RowRange
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant
from spark.counting import (
    COUNTS,
    ONCE,
    ROWS,
    STREAM,
    counted,
    expected_counts,
    found_counts,
    stream_topology,
)
from spark.run_to import LIMIT_S

pytestmark = pytest.mark.spark

KEY_GROUPS = 2


def test_branches_share_what_they_have_in_common(session: SparkSession, tmp_path: Path) -> None:
    """Two stateful branches and a raw one: one read of the source, each branch complete."""
    made = stream_topology()
    made.add("fast", "SELECT * FROM rows WHERE value > 0.5", "rows")
    made.add("by_key", counted, "fast")
    made.add("again", counted, "fast")
    for name in ("fast", "by_key", "again"):
        made.sink(f"{name}_out", name, Memory())
    made.sink("files", "by_key", Files(str(tmp_path / "files")))
    with RunningTopology(made, session, tmp_path / "c", ONCE) as running:
        (query,) = running.built.queries
        assert query.sharing.shared == ("fast",)
        assert query.sharing.repeated == ()
        assert running.wait(LIMIT_S)
        running.settle(LIMIT_S)
        reports = running.reports.take()
        expected = expected_counts(running.epoch_s, lambda rows: rows["value"] > 0.5)
        for name in ("by_key", "again"):
            assert found_counts(running.rows(f"{name}_out")) == expected
        raw = running.rows("fast_out")
        assert len(raw) == len({row.row for row in raw})
        assert set(reports[0].edge_rows) == {"fast", "by_key", "again"}
        assert sum(report.rows for report in reports) == ROWS
        files = session.read.parquet(str(tmp_path / "files")).drop("batch").collect()
    assert found_counts(files) == expected


def test_a_source_is_read_once_per_batch(session: SparkSession, tmp_path: Path) -> None:
    log = tmp_path / "reads"

    def reader(spark: SparkSession) -> DataFrame:
        frame = spark.readStream.format("penstock-generator")
        options = {"generator": STREAM.to_json(), "epoch_s": "1000.0", "stream": "rows"}
        return frame.options(**options).load().mapInArrow(noting, "row BIGINT, key BIGINT")

    def noting(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            with log.open("a") as stream:
                stream.write(f"{batch.num_rows}\n")
            yield batch.select(["row", "key"])

    made = Topology("once", max_latency="30s")
    made.source("rows", reader)
    made.add("even", "SELECT row FROM rows WHERE row % 2 = 0", "rows")
    made.add("odd", "SELECT key FROM rows WHERE row % 2 = 1", "rows")
    made.sink("even_out", "even", Memory())
    made.sink("odd_out", "odd", Memory())
    with RunningTopology(made, session, tmp_path / "c", ONCE) as running:
        assert running.wait(LIMIT_S)
        assert len(running.rows("even_out")) == len(running.rows("odd_out")) == ROWS // 2
    assert sum(map(int, log.read_text().split())) == ROWS


def test_a_watermark_before_a_split_is_not_lost(session: SparkSession, tmp_path: Path) -> None:
    """Spark's exchange reuse would hide it from all branches but one, which then never emit."""
    made = stream_topology()
    made.add("timed", lambda rows: rows.withWatermark("at", "1 second"), "rows")
    for name in ("one", "two"):
        made.add(name, COUNTS.replace("{timed}", "timed"), "timed")
        made.sink(f"{name}_out", name, Memory())
    with RunningTopology(made, session, tmp_path / "c", ONCE) as running:
        assert any("timed runs 2 times" in reason for reason in running.built.repeats)
        assert running.wait(LIMIT_S)
        running.settle(LIMIT_S)
        assert sum(entry.rows for entry in running.ledger.take()) == pytest.approx(ROWS)
        expected = expected_counts(running.epoch_s, lambda rows: rows["value"] >= 0)
        assert found_counts(running.rows("one_out")) == expected
        assert found_counts(running.rows("two_out")) == expected


def test_sinks_of_several_modes_run_as_several_queries(
    session: SparkSession, tmp_path: Path
) -> None:
    made = stream_topology()
    made.add("totals", lambda rows: rows.groupBy("key").agg(F.count("*").alias("n")), "rows")
    made.sink("raw", "rows", Memory())
    made.sink("latest", "totals", Memory(), mode="update")
    with RunningTopology(made, session, tmp_path / "c", ONCE) as running:
        assert [query.name for query in running.built.plan.queries] == [
            "made-append",
            "made-update",
        ]
        assert "several (append, update)" in running.built.plan.reasons[0]
        assert running.wait(LIMIT_S)
        running.settle(LIMIT_S)
        assert sum(entry.rows for entry in running.ledger.take()) == pytest.approx(ROWS)
        rows = STREAM.batch(0, ROWS, 0.0).to_pandas()
        latest = {row.key: row.n for row in running.rows("latest")}
        assert latest == rows.groupby("key").size().to_dict()
        assert len(running.rows("raw")) == ROWS


def test_a_sink_that_raises_ends_the_run_with_its_name(
    session: SparkSession, tmp_path: Path
) -> None:
    def refuse(rows: DataFrame, batch_id: int) -> None:
        if batch_id == 1:
            raise ValueError("the database is full")

    made = stream_topology()
    made.sink("store", "rows", ForeachBatch(refuse))
    with (
        RunningTopology(made, session, tmp_path / "c", ONCE) as running,
        pytest.raises(PenstockError, match="sink 'store': function: ValueError: the database is"),
    ):
        running.wait(LIMIT_S)


def _take(rows: DataFrame, _batch_id: int) -> None:
    rows.take(1)


def _look_twice(rows: DataFrame, _batch_id: int) -> None:
    if not rows.isEmpty():
        rows.count()


@pytest.mark.parametrize(
    "sink",
    [
        pytest.param(Console(rows=1), id="console", marks=pytest.mark.long),
        pytest.param(ForeachBatch(_take), id="take"),
        pytest.param(ForeachBatch(_look_twice), id="twice", marks=pytest.mark.long),
        pytest.param(ForeachBatch(lambda rows, batch_id: None), id="nothing"),
    ],
)
def test_state_is_written_whole_and_once_whatever_part_a_sink_takes(
    sink: Console | ForeachBatch, session: SparkSession, tmp_path: Path
) -> None:
    made = stream_topology()
    made.add("counts", counted, "rows")
    made.sink("seen", "counts", sink)
    with RunningTopology(made, session, tmp_path / "c", ONCE) as running:
        assert running.wait(LIMIT_S)
        ended = [p for p in running.queries[0].recentProgress if p.numInputRows]
    for number, progress in enumerate(ended):
        first, last = ROWS // 2 * number, ROWS // 2 * (number + 1)
        rows = STREAM.batch(first, last, running.epoch_s).to_pandas()
        windows = rows.assign(at=rows["at"].dt.floor("1s")).drop_duplicates(["key", "at"])
        assert progress.stateOperators[0].numRowsUpdated == len(windows)
    assert len(ended) == 2


def test_a_sink_directory_of_another_run_is_refused(session: SparkSession, tmp_path: Path) -> None:
    made = stream_topology()
    made.sink("out", "rows", Files(str(tmp_path / "out")))
    with RunningTopology(made, session, tmp_path / "first", ONCE) as running:
        with (
            pytest.raises(PenstockError, match="out is in use by another run"),
            RunningTopology(made, session, tmp_path / "second", ONCE),
        ):
            pass
        assert running.wait(LIMIT_S)
    with (
        pytest.raises(PenstockError, match="exists already and this run starts from scratch"),
        RunningTopology(made, session, tmp_path / "third", ONCE),
    ):
        pass
    with RunningTopology(made, session, tmp_path / "first", ONCE) as running:
        assert running.wait(LIMIT_S), "who goes on is not in its own way"
    assert session.read.parquet(str(tmp_path / "out")).count() == ROWS


def test_a_run_that_lost_its_directory_to_another_one_ends(
    session: SparkSession, tmp_path: Path
) -> None:
    """As one in a remote store may, where nothing can be locked."""
    made = stream_topology()
    made.sink("out", "rows", Files(str(tmp_path / "out")))
    running = RunningTopology(made, session, tmp_path / "checkpoint", ONCE)
    owner = tmp_path / "out/_penstock/owner"
    running.before_batch.append(lambda _, __: write_atomically(owner, {"writer": "another"}))
    with running, pytest.raises(PenstockError, match="out was taken over by another run"):
        running.wait(LIMIT_S)
    assert not list((tmp_path / "out").glob("batch=*"))


def test_a_stream_joined_with_itself_is_complete(session: SparkSession, tmp_path: Path) -> None:
    made = stream_topology()

    @made.operator("rows")
    def pairs(rows: DataFrame) -> DataFrame:
        timed = rows.withWatermark("at", "1 second")
        other = timed.select(F.col("row").alias("other"), F.col("at").alias("seen"))
        return timed.join(other, F.expr("row = other AND at = seen")).select("row", "other")

    made.sink("out", "pairs", Memory())
    with RunningTopology(made, session, tmp_path / "c") as running:
        assert running.wait(LIMIT_S)
        assert sorted(row.row for row in running.rows("out")) == list(range(ROWS))


def test_queries_over_different_streams_end_when_both_are_done(
    session: SparkSession, tmp_path: Path
) -> None:
    made = Topology("apart", max_latency="30s")
    made.source("left_rows", STREAM)
    made.source("right_rows", STREAM)
    made.add("totals", "SELECT key, count(*) AS n FROM right_rows GROUP BY key", "right_rows")
    made.sink("raw", "left_rows", Memory())
    made.sink("latest", "totals", Memory(), mode="update")
    with RunningTopology(made, session, tmp_path / "c") as running:
        assert running.wait(LIMIT_S)
        assert len(running.rows("raw")) == ROWS
        latest = {row.key: row.n for row in running.rows("latest")}
        assert sum(latest.values()) == ROWS


def test_a_run_without_end_emits_what_the_last_watermark_closes(
    session: SparkSession, tmp_path: Path
) -> None:
    made = stream_topology()
    made.add("counts", counted, "rows")
    made.sink("out", "counts", Memory())
    with RunningTopology(made, session, tmp_path / "c") as running:
        assert running.wait(LIMIT_S)
        expected = expected_counts(running.epoch_s, lambda rows: rows["value"] >= 0)
        assert found_counts(running.rows("out")) == expected


def test_it_does_so_too_where_the_disk_is_full_in_the_last_batch(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = stream_topology()
    made.add("counts", counted, "rows")
    made.sink("out", "counts", Memory())
    full_in: list[int] = []
    with RunningTopology(made, session, tmp_path / "c") as running:
        (writer,) = running._writers
        write = writer._write

        def full_once(batch: DataFrame, batch_id: int) -> None:
            if running.finished() and not full_in:
                full_in.append(batch_id)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            write(batch, batch_id)

        monkeypatch.setattr(writer, "_write", full_once)
        assert running.wait(LIMIT_S)
        assert full_in, "the last batch has no rows"
        expected = expected_counts(running.epoch_s, lambda rows: rows["value"] >= 0)
        assert found_counts(running.rows("out")) == expected


def test_csv_refuses_columns_it_has_no_place_for(session: SparkSession, tmp_path: Path) -> None:
    made = stream_topology()
    made.add("counts", counted, "rows")
    made.sink("out", "counts", Files(str(tmp_path / "out"), "csv"))
    with pytest.raises(InvalidTopology, match="format 'csv' has no place for column 'window'"):
        build(made, session, Reading(0.0))


def test_whoever_looks_on_cannot_end_the_query(session: SparkSession, tmp_path: Path) -> None:
    made = stream_topology()
    made.sink("out", "rows", Memory())

    def fail(query: str, batch_id: int) -> None:
        raise RuntimeError("a bug in a measurer")

    running = RunningTopology(made, session, tmp_path / "c", ONCE)
    running.after_batch.append(fail)
    with running:
        assert running.wait(LIMIT_S)
        assert len(running.rows("out")) == ROWS


def test_ranges_of_the_generator_have_no_gap() -> None:
    reader = GeneratorReader(STREAM, 0.0, "rows", RoutedReading("rows"))
    ranges = reader.partitions({"row": 3}, {"row": 10})
    assert ranges == [RowRange(3, 6, lane=0), RowRange(6, 10, lane=1)]
    assert reader.partitions({"row": 3}, {"row": 3}) == []
    assert sum(batch.num_rows for part in ranges for batch in reader.read(part)) == 7


@pytest.mark.parametrize(
    ("declare", "said"),
    [
        (lambda t: t.add("a", "SELECT * FROM s", "s", cheaper="SELECT key FROM s"), "must be the"),
        (
            lambda t: t.add("a", "SELECT key, count(*) n FROM s GROUP BY key", "s",
                            cheaper="SELECT key, 1L AS n FROM s"),
            "has state",
        ),
        (
            lambda t: t.add("a", lambda s: s.withWatermark("at", "1 second"), "s",
                            cheaper="SELECT * FROM s"),
            "after it",
        ),
        (lambda t: t.add("a", "SELECT * FROM r", "r", cheaper="SELECT * FROM r"), "only a Gen"),
        (
            lambda t: t.add("a", lambda r, s: s.unionByName(r, True), ("r", "s"),
                            cheaper=lambda r, s: s),
            "one upstream",
        ),
    ],
)  # fmt: skip
def test_a_form_that_is_no_replacement_is_refused(
    session: SparkSession, declare: Callable[[Topology], object], said: str
) -> None:
    made = Topology("forms", max_latency="5s")
    made.source("s", Generator(constant(10.0), keys=2))
    made.source("r", lambda session: session.readStream.format("rate").load())
    declare(made)
    made.sink("out", "a", Memory())
    made.sink("rest", "s", Memory())
    made.sink("others", "r", Memory())
    with pytest.raises(InvalidTopology, match=said) as refused:
        build(made, session, Reading(0.0))
    assert "operator 'a': cheaper" in str(refused.value)


def test_forms_behind_each_other_are_all_in_the_query(session: SparkSession) -> None:
    made = Topology("forms", max_latency="5s")
    made.source("s", Generator(constant(10.0), keys=2))
    made.add("a", "SELECT *, 1 AS a FROM s", "s", cheaper="SELECT *, 2 AS a FROM s")
    made.add("b", "SELECT * FROM a WHERE value > 0", "a")
    made.add("c", "SELECT *, 3 AS c FROM b", "b", cheaper="SELECT *, 4 AS c FROM b")
    made.sink("out", "c", Memory())
    built = build(made, session, Reading(0.0))
    plan = built.queries[0].frame._jdf.queryExecution().analyzed().toString()
    assert built.queries[0].frame.columns == ["row", "key", "value", "at", "a", "c"]
    assert built.queries[0].sharing.shared == ("s",)
    assert {f"{n} AS a" in plan for n in (1, 2)} == {True}
    assert {f"{n} AS c" in plan for n in (3, 4)} == {True}


def test_nothing_new_is_nothing_to_wait_for(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark keeps a trigger that found nothing among its progress, and tells nobody of it."""
    made = stream_topology()
    made.sink("out", "rows", Memory())

    def slept(_: float) -> None:
        raise AssertionError("it waits for a report that never comes")

    with RunningTopology(made, session, tmp_path / "c", ONCE) as running:
        assert running.wait(LIMIT_S)
        running.settle(LIMIT_S)
        ended = handles.last_batch(running.queries[0])
        assert running.reports.latest == {"made": ended}
    with RunningTopology(made, session, tmp_path / "c", ONCE) as running:
        assert running.wait(LIMIT_S)
        (query,) = running.queries
        assert query.lastProgress.batchId == ended + 1
        assert handles.last_batch(query) == ended
        monkeypatch.setattr(together.time, "sleep", slept)
        running.settle(LIMIT_S)
