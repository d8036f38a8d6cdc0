"""Whether a source is read again or shared: prices of a sample, and what is said of them."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, orc, parquet
from pyspark.sql.types import LongType, StringType, StructField, StructType

from penstock.fusion.reading import Sample, choose_reading
from penstock.spark.compile.file_samples import ROWS, sample_of
from penstock.spark.handles.file_scans import FileScan

BID = {"auction": 8.0, "bidder": 8.0, "price": 8.0, "channel": 16.0, "url": 60.0, "at": 8.0}
TYPES = StructType([StructField("id", LongType()), StructField("name", StringType())])
TABLE = pa.table({"id": pa.array(range(100)), "name": ["x" * 32] * 100})


def test_few_columns_of_files_by_column_are_read_again() -> None:
    used = [("auction", "price"), ("bidder",), ("auction", "at")]
    made = choose_reading("bid", used, Sample("parquet", BID, 50_000))
    assert made.again
    assert sum(made.again_s) < made.shared_s
    assert made.used == (2, 1, 2)
    assert "to read the 1 to 2 columns each uses" in made.what
    assert "to share all 6 columns by an exchange" in made.what
    assert "measured on 50,000 rows of Parquet" in made.what


def test_text_that_would_be_parsed_by_each_of_many_is_shared() -> None:
    used = [("auction", "price")] * 30
    made = choose_reading("bid", used, Sample("json", BID, 900))
    assert not made.again
    assert sum(made.again_s) > made.shared_s


def test_an_exchange_does_not_pay_for_little() -> None:
    """One more stage of each batch has its price, however few rows there are."""
    used = [("auction", "price")] * 6
    few, many = (choose_reading("bid", used, Sample("csv", BID, 900, n)) for n in (10_000, 10**6))
    assert few.again
    assert not many.again
    assert "of 10,000 rows, as a file has; measured on 900 rows of CSV" in few.what


def test_each_consumer_more_costs_either_way_more() -> None:
    sample = Sample("csv", BID)
    few, many = (choose_reading("bid", [tuple(BID)] * n, sample) for n in (2, 9))
    assert sum(many.again_s) > sum(few.again_s)
    assert many.shared_s > few.shared_s
    assert "guessed from the types of its columns in CSV" in many.what


def written(folder: Path, kind: str) -> Path:
    file = folder / f"b.{kind}"
    if kind == "parquet":
        parquet.write_table(TABLE, file)
    elif kind == "orc":
        orc.write_table(TABLE, file)
    else:
        csv.write_csv(TABLE, file, csv.WriteOptions(include_header=False))
    return file


@pytest.mark.parametrize("kind", ["parquet", "orc", "csv"])
def test_a_sample_says_what_columns_take(kind: str, tmp_path: Path) -> None:
    file = written(tmp_path, kind)
    (tmp_path / "_SUCCESS").touch()
    for path in (str(tmp_path), file.as_uri()):
        found = sample_of(FileScan(kind, path), TYPES)
        assert (found.rows, found.file_rows) == (100, 100)
        assert found.column_bytes["id"] == 8.0
        assert found.column_bytes["name"] == pytest.approx(40.0, abs=4.0)


def test_a_sample_is_no_more_than_some_rows(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"id": pa.array(range(3 * ROWS))}), tmp_path / "a.parquet")
    found = sample_of(FileScan("parquet", str(tmp_path)), TYPES)
    assert (found.rows, found.file_rows) == (ROWS, 3 * ROWS)


def test_the_rows_of_a_large_text_follow_from_its_first(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"id": 123, "name": "abc"}\n' * 40_000)
    found = sample_of(FileScan("json", str(tmp_path)), TYPES)
    assert 0 < found.rows < 40_000 == found.file_rows


@pytest.mark.parametrize("path", [None, "/nowhere/at/all", "s3a://bucket/bids", "damaged"])
def test_what_cannot_be_looked_at_is_guessed(path: str | None, tmp_path: Path) -> None:
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "a.parquet").write_bytes(b"PAR1 and no more")
    at = str(tmp_path / path) if path == "damaged" else path
    found = sample_of(FileScan("parquet", at), TYPES)
    assert (found.rows, dict(found.column_bytes)) == (0, {"id": 8.0, "name": 24.0})
