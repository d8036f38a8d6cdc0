"""Sources of files are read again by each consumer, or shared: by price, and for good."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.fusion import reading
from penstock.fusion.reading import Unit
from penstock.model.sinks import Memory
from penstock.model.topology import Topology
from penstock.spark.checkpoint.sealed import sealed, unsealed
from penstock.spark.compile.builder import BuiltTopology, build
from penstock.spark.compile.inspection import Reading
from penstock.spark.run.together import RunningTopology
from spark.counting import ONCE
from spark.run_to import run_to

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
    assert sorted(choice.used) == [2, 3, 3]
    (told,) = [one for one in made.repeats if one.startswith("rows ")]
    assert told.startswith("rows runs 3 times per batch: 3 x ")
    assert "to share all 6 columns by an exchange" in told
    assert f"measured on {ROWS} rows of Parquet" in told


def test_text_is_shared_where_that_costs_less(
    session: SparkSession, files: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "WRITE", FREE)
    monkeypatch.setattr(reading, "FETCH", FREE)
    monkeypatch.setattr(reading, "STAGE_S", 0.0)
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


def priced(monkeypatch: pytest.MonkeyPatch, exchange: Unit) -> None:
    """What an exchange costs, which reading again is compared with."""
    monkeypatch.setattr(reading, "WRITE", exchange)
    monkeypatch.setattr(reading, "FETCH", exchange)
    monkeypatch.setattr(reading, "STAGE_S", exchange.row_s)


@pytest.mark.parametrize("again", [True, False])
def test_a_run_keeps_to_what_its_checkpoint_began_with(
    session: SparkSession, files: Callable[[str], Path], tmp_path: Path, again: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    made = topology(files("json"), "json")

    def started(checkpoint: str) -> tuple[tuple[str, ...], int]:
        with RunningTopology(made, session, tmp_path / checkpoint, ONCE) as running:
            run_to(running, None)
            (query,) = running.built.queries
            assert (query.sharing.copies["rows"] > 1) == ("rows" in query.again)
            return query.again, sum(row.n for row in running.rows("ids_out"))

    total = sum(range(ROWS))
    begun, other = (("rows",), ()) if again else ((), ("rows",))
    priced(monkeypatch, DEAR if again else FREE)
    assert started("begun") == (begun, total)
    priced(monkeypatch, FREE if again else DEAR)
    assert started("begun") == (begun, 0)  # nothing is new
    assert started("another") == (other, total)


def test_a_checkpoint_of_an_earlier_version_goes_on_as_it_began(
    session: SparkSession, files: Callable[[str], Path], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Then files of text were shared, whatever that cost, and nothing was said of it."""
    made = topology(files("json"), "json")
    priced(monkeypatch, FREE)
    with RunningTopology(made, session, tmp_path / "c", ONCE) as running:
        run_to(running, None)
    (record,) = tmp_path.rglob("plan.json")
    document = unsealed(record.read_bytes())
    assert document.pop("read again") == {"shared": []}
    record.write_bytes(sealed(document))
    priced(monkeypatch, DEAR)
    with RunningTopology(made, session, tmp_path / "c", ONCE) as running:
        assert running.built.queries[0].again == ()
        run_to(running, None)
