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
from penstock.spark.handles.file_scans import file_scan
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


def made_of(folder: Path, format_: str, columns: str) -> Topology:
    """Two consumers of a source that makes other columns of those in its files."""
    made = Topology("made", max_latency="60s")

    def rows(spark: SparkSession) -> DataFrame:
        read = spark.readStream.schema(SCHEMA).format(format_).load(str(folder))
        return read.selectExpr(*columns.split(", "))

    made.source("rows", rows)
    for name in ("a", "b"):
        made.add(name, "SELECT x, count(*) AS n FROM rows GROUP BY x", "rows")
        made.sink(f"{name}_out", name, Memory(), mode="update")
    return made


@pytest.mark.parametrize("format_", ["parquet", "orc", "json"])
@pytest.mark.parametrize("columns", ["key + price AS x, id AS y", "_metadata.file_name AS x, *"])
def test_a_source_may_make_other_columns_of_those_in_its_files(
    session: SparkSession, files: Callable[[str], Path], format_: str, columns: str
) -> None:
    made = build(made_of(files(format_), format_, columns), session, Reading(0.0))
    choice = made.queries[0].readings["rows"]
    assert choice.used == ((2, 2) if columns.startswith("key") else (0, 0))
    assert set(choice.sample.column_bytes) == {"id", "key", "price", "name", "text", "at"}
    assert choice.sample.rows == ROWS


@pytest.mark.parametrize("format_", ["parquet", "json"])
def test_without_counters_nothing_is_priced(
    session: SparkSession, files: Callable[[str], Path], format_: str
) -> None:
    """They say which rows are which; text is shared then, as it was before there were prices."""
    made = topology(files(format_), format_)
    (query,) = build(made, session, Reading(0.0, measured=False)).queries
    assert (query.readings, query.again) == ({}, ("rows",) if format_ == "parquet" else ())


def test_an_exchange_is_priced_where_it_would_be(
    session: SparkSession, files: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a step of SQL that leaves two of six columns, which are all that it carries."""
    made = Topology("made", max_latency="60s")
    made.source("rows", lambda spark: spark.readStream.schema(SCHEMA).json(str(files("json"))))
    made.add("some", "SELECT key, price * 2 AS price FROM rows WHERE id > 3", "rows")
    for name in ("a", "b", "c"):
        made.add(name, f"SELECT key, sum(price) AS {name} FROM some GROUP BY key", "some")
        made.sink(f"{name}_out", name, Memory(), mode="update")
    (query,) = build(made, session, Reading(0.0)).queries
    choice = query.readings["rows"]
    assert (choice.used, choice.carried, choice.again) == ((3, 3, 3), (2,), True)
    monkeypatch.setattr(reading, "STAGE_S", 0.0)
    (query,) = build(made, session, Reading(0.0)).queries
    assert (query.again, query.sharing.shared) == ((), ("some",))


def test_what_cannot_be_shared_has_no_price(
    session: SparkSession, files: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """State behind a watermark must see it, which it would not through an exchange."""
    priced(monkeypatch, FREE)
    made = Topology("made", max_latency="60s")

    def rows(spark: SparkSession) -> DataFrame:
        read = spark.readStream.schema(SCHEMA).json(str(files("json")))
        return read.withWatermark("at", "1 second")

    made.source("rows", rows)
    for name in ("a", "b"):
        made.add(name, f"SELECT key, count(*) AS {name} FROM rows GROUP BY key", "rows")
        made.sink(f"{name}_out", name, Memory(), mode="update")
    topology = build(made, session, Reading(0.0))
    (query,) = topology.queries
    assert (query.readings, query.again, query.sharing.copies["rows"]) == ({}, ("rows",), 2)
    assert not any("once per batch" in one for one in topology.repeats)


def test_what_an_exchange_is_above_of_is_read_once(
    session: SparkSession, files: Callable[[str], Path]
) -> None:
    """By however many consumers, and whatever of other sources is chosen."""
    made = Topology("made", max_latency="60s")
    for source in ("rows", "more"):

        def read(spark: SparkSession) -> DataFrame:
            return spark.readStream.schema(SCHEMA).json(str(files("json")))

        made.source(source, read)
        made.add(f"of_{source}", lambda rows: rows.mapInPandas(lambda it: it, SCHEMA), source)
        for number in range(3):
            name = f"{source}_{number}"
            sql = f"SELECT key, count(*) AS n FROM of_{source} GROUP BY key"
            made.add(name, sql, f"of_{source}")
            made.sink(f"{name}_out", name, Memory(), mode="update")
    made.add("other", "SELECT key, count(*) AS n FROM rows GROUP BY key", "rows")
    made.sink("other_out", "other", Memory(), mode="update")
    (query,) = build(made, session, Reading(0.0)).queries
    assert (query.sharing.copies["rows"], query.sharing.copies["more"]) == (2, 1)
    assert list(query.readings) == ["rows"]
    assert sorted(query.readings["rows"].used) == [1, 6]
    assert query.again == ("more", "rows")


def test_a_scan_is_what_the_options_say(
    session: SparkSession, files: Callable[[str], Path]
) -> None:
    reader = session.readStream.schema(SCHEMA).option("pathglobfilter", "*.json")
    at = str(files("json"))
    found = file_scan(reader.json(at))
    assert found is not None
    assert (found.format, found.path, found.names, found.in_lines) == ("json", at, "*.json", True)
    assert found.schema.names == ["id", "key", "price", "name", "text", "at"]
    several = file_scan(reader.option("multiline", "TRUE").json(at))
    assert several is not None
    assert not several.in_lines


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
    for _ in ("without that", "without any record"):
        with RunningTopology(made, session, tmp_path / "c", ONCE) as running:
            assert running.built.queries[0].again == ()
            run_to(running, None)
        record.unlink()
