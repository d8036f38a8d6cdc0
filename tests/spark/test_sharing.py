"""Sources of files are read again by each consumer, or shared: by price, and for good."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.fusion import reading
from penstock.fusion.reading import Unit
from penstock.model.sinks import Memory
from penstock.model.topology import Topology
from penstock.spark.compile.builder import BuiltTopology, build
from penstock.spark.compile.inspection import Reading
from penstock.spark.run.together import RunningTopology
from spark.counting import ONCE
from spark.run_to import LIMIT_S

pytestmark = pytest.mark.spark

ROWS = 500
SCHEMA = "id BIGINT, key BIGINT, price BIGINT, name STRING, text STRING, at TIMESTAMP"
DEAR, FREE = Unit(1.0, 1.0, 1.0), Unit(0.0, 0.0, 0.0)


@pytest.fixture(scope="module")
def files(session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Rows in files of a format."""

    def written(format_: str) -> Path:
        folder = tmp_path_factory.getbasetemp() / f"rows-{format_}"
        if not folder.exists():
            rows = session.range(0, ROWS, 1, 1).selectExpr(
                "id", "id % 7 AS key", "id * 3 AS price", "repeat('n', 20) AS name",
                "repeat('t', 50) AS text", "timestamp_seconds(id) AS at",
            )  # fmt: skip
            rows.write.format(format_).save(str(folder))
        return folder

    return written


def topology(folder: Path, format_: str) -> Topology:
    """Three consumers of one to two of six columns, behind a step of SQL alone."""
    made = Topology("shared", max_latency="60s")
    made.source(
        "rows", lambda spark: spark.readStream.schema(SCHEMA).format(format_).load(str(folder))
    )
    made.add("some", "SELECT * FROM rows WHERE id >= 0", "rows")
    for name, column in (("prices", "price"), ("ids", "id")):

        def total(some: DataFrame, column: str = column) -> DataFrame:
            return some.groupBy("key").agg(F.sum(column).alias("n"))

        made.add(name, total, "some")
        made.sink(f"{name}_out", name, Memory(), mode="update")
    made.add("names", "SELECT name FROM some WHERE key = 1", "some")
    made.sink("names_out", "names", Memory(), mode="update")
    return made


def built(session: SparkSession, folder: Path, format_: str) -> BuiltTopology:
    return build(topology(folder, format_), session, Reading(0.0))


def test_files_by_column_are_read_again_and_the_numbers_are_told(
    session: SparkSession, files: Callable[[str], Path]
) -> None:
    made = built(session, files("parquet"), "parquet")
    (query,) = made.queries
    assert (query.again, query.sharing.shared) == (("rows",), ())
    choice = query.readings["rows"]
    # A consumer that filters needs what it filters by.
    assert sorted(choice.used) == [3, 3, 3]
    (told,) = [one for one in made.repeats if one.startswith("rows ")]
    assert told.startswith("rows runs 3 times per batch: 3 x ")
    assert "to share all 6 columns by an exchange" in told
    assert f"measured on {ROWS} rows of Parquet" in told


def test_text_is_shared_where_that_costs_less(
    session: SparkSession, files: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "WRITE", FREE)
    monkeypatch.setattr(reading, "FETCH", FREE)
    made = built(session, files("json"), "json")
    (query,) = made.queries
    assert (query.again, query.sharing.copies["rows"]) == ((), 1)
    (told,) = [one for one in made.repeats if one.startswith("rows ")]
    assert told.startswith("rows is read once per batch: 3 x ")
    assert f"measured on {ROWS} rows of JSON" in told


def test_files_that_are_not_there_yet_are_guessed(session: SparkSession, tmp_path: Path) -> None:
    made = built(session, tmp_path, "parquet")
    (told,) = [one for one in made.repeats if one.startswith("rows ")]
    assert "guessed from the types of its columns in Parquet" in told


@pytest.mark.parametrize("again", [True, False])
def test_a_run_keeps_to_what_its_checkpoint_began_with(
    session: SparkSession, files: Callable[[str], Path], tmp_path: Path, again: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    folder = files("parquet")

    def priced(read_again: bool) -> None:
        through = DEAR if read_again else FREE
        monkeypatch.setattr(reading, "WRITE", through)
        monkeypatch.setattr(reading, "FETCH", through)

    def started(checkpoint: str) -> tuple[str, ...]:
        with RunningTopology(
            topology(folder, "parquet"), session, tmp_path / checkpoint, ONCE
        ) as running:
            assert running.wait(LIMIT_S)
            running.settle(LIMIT_S)
            running.raise_failure()
            (query,) = running.built.queries
            totals = {row.key: row.n for row in running.rows("ids_out")}
            if checkpoint == "begun" and not totals_of:
                totals_of.update(totals)
                assert sum(totals.values()) == sum(range(ROWS))
            assert (query.sharing.copies["rows"] > 1) == ("rows" in query.again)
            return query.again

    totals_of: dict[int, int] = {}
    wanted = ("rows",) if again else ()
    priced(again)
    assert started("begun") == wanted
    priced(not again)
    assert started("begun") == wanted
    assert started("other") != wanted


def test_a_checkpoint_of_an_earlier_version_goes_on_as_it_began(
    session: SparkSession, files: Callable[[str], Path], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Then files by column were read again, whatever that cost."""
    checkpoint = tmp_path / "c"
    made = topology(files("parquet"), "parquet")
    with RunningTopology(made, session, checkpoint, ONCE) as running:
        assert running.wait(LIMIT_S)
    (record,) = checkpoint.rglob("plan.json")
    document = json.loads(record.read_text())
    assert document.pop("read again") == {"shared": ["rows"]}
    record.write_text(json.dumps(document))
    monkeypatch.setattr(reading, "WRITE", FREE)
    monkeypatch.setattr(reading, "FETCH", FREE)
    with RunningTopology(made, session, checkpoint, ONCE) as running:
        assert running.built.queries[0].again == ("rows",)
        assert running.wait(LIMIT_S)
