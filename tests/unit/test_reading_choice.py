"""Whether a source is read again or shared: prices of a sample, and what is said of them."""

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, orc, parquet
from pyspark.sql.types import LongType, StringType, StructField, StructType

from penstock.fusion.reading import Exchange, Sample, choose_reading
from penstock.spark.compile.file_samples import ROWS, TABLE_BYTES, sample_of
from penstock.spark.handles.file_scans import FileScan

BID = {"auction": 8.0, "bidder": 8.0, "price": 8.0, "channel": 16.0, "url": 60.0, "at": 8.0}
TYPES = StructType([StructField("id", LongType()), StructField("name", StringType())])
TABLE = pa.table({"id": pa.array(range(100)), "name": ["x" * 32] * 100})


def through(consumers: int, *columns: str) -> Exchange:
    """An exchange of some columns; of all, where none is named."""
    return Exchange({name: BID[name] for name in columns or BID}, consumers)


def test_few_columns_of_files_by_column_are_read_again() -> None:
    used = [("auction", "price"), ("bidder",), ("auction", "at")]
    made = choose_reading("bid", used, Sample("parquet", BID, 50_000), [through(3)])
    assert made.again
    assert sum(made.again_s) < made.shared_s
    assert made.used == (2, 1, 2)
    assert "to read the 1 to 2 columns each uses" in made.what
    assert "to share all 6 columns by an exchange" in made.what
    assert "measured on 50,000 rows of Parquet" in made.what


def test_text_that_would_be_parsed_by_each_of_many_is_shared() -> None:
    used = [("auction", "price")] * 30
    made = choose_reading("bid", used, Sample("json", BID, 900), [through(30)])
    assert not made.again
    assert sum(made.again_s) > made.shared_s


def test_an_exchange_does_not_pay_for_little() -> None:
    """One more stage of each batch has its price, however few rows there are."""
    used = [("auction", "price")] * 6
    few, many = (
        choose_reading("bid", used, Sample("csv", BID, 900, n), [through(6)])
        for n in (10_000, 10**6)
    )
    assert few.again
    assert not many.again
    assert "of 10,000 rows, as a file has; measured on 900 rows of CSV" in few.what


def test_each_consumer_more_costs_either_way_more() -> None:
    sample = Sample("csv", BID)
    few, many = (choose_reading("bid", [tuple(BID)] * n, sample, [through(n)]) for n in (2, 9))
    assert sum(many.again_s) > sum(few.again_s)
    assert many.shared_s > few.shared_s
    assert "guessed from the types of its columns in CSV" in many.what


def test_an_exchange_behind_a_step_that_leaves_few_columns_carries_those() -> None:
    """Text of which two columns are used is parsed once, where all of it would be too dear."""
    sample = Sample("csv", {**BID, "rest": 1000.0}, 900, 200_000)
    used, whole = [("auction", "price")] * 2, Exchange(sample.column_bytes, 2)
    assert choose_reading("bid", used, sample, [whole]).again
    made = choose_reading("bid", used, sample, [through(2, "auction", "price")])
    assert not made.again
    assert "to share 2 columns by an exchange" in made.what
    several = choose_reading("bid", used, sample, [through(2, "auction", "price"), through(2)])
    assert several.shared_s > made.shared_s
    assert "to share 2 to 6 columns by 2 exchanges" in several.what


def test_a_consumer_that_counts_rows_uses_no_columns() -> None:
    made = choose_reading("bid", [(), ()], Sample("csv", BID), [through(2, "price")])
    assert "to read the 0 columns each uses" in made.what
    assert "to share 1 column by an exchange" in made.what


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
        found = sample_of(FileScan(kind, path, TYPES))
        assert (found.rows, found.file_rows) == (100, 100)
        assert found.column_bytes["id"] == 8.0
        assert found.column_bytes["name"] == pytest.approx(40.0, abs=4.0)


def test_a_sample_is_no_more_than_some_rows(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"id": pa.array(range(3 * ROWS))}), tmp_path / "a.parquet")
    found = sample_of(FileScan("parquet", str(tmp_path), TYPES))
    assert (found.rows, found.file_rows) == (ROWS, 3 * ROWS)


def test_the_rows_of_a_large_text_follow_from_its_first(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"id": 123, "name": "abc"}\n' * 40_000)
    found = sample_of(FileScan("json", str(tmp_path), TYPES))
    assert 0 < found.rows < 40_000 == found.file_rows


@pytest.mark.parametrize(
    "path",
    [
        None, "", "/nowhere/at/all", "s3a://bucket/bids", "damaged", "/nowhere/*/[a", "/{a,b}/*",
        "s3a://[bucket/bids", "//[a/b", "file:", "file://host/a", "/" + "long" * 100, "/a\0b",
    ],
)  # fmt: skip
def test_what_cannot_be_looked_at_is_guessed(path: str | None, tmp_path: Path) -> None:
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "a.parquet").write_bytes(b"PAR1 and no more")
    at = str(tmp_path / path) if path == "damaged" else path
    found = sample_of(FileScan("parquet", at, TYPES))
    assert (found.rows, dict(found.column_bytes)) == (0, {"id": 8.0, "name": 24.0})


LINE = '{"id": 123, "name": "abc"}\n'


def folder_of(made: Path, name: str = "a.json", text: str = LINE * 1000) -> Path:
    made.mkdir(parents=True, exist_ok=True)
    (made / name).write_text(text)
    return made


@pytest.mark.parametrize(("end", "opened"), [(".gz", gzip.open), (".bz2", bz2.open)])
def test_a_compressed_text_has_the_rows_it_is_read_as(
    end: str, opened: Callable[..., object], tmp_path: Path
) -> None:
    rows = 50_000
    with opened(tmp_path / f"a.csv{end}", "wt") as file:  # type: ignore[attr-defined]
        file.writelines(f"{i},name{i * 7919 % 1000}\n" for i in range(rows))
    found = sample_of(FileScan("csv", str(tmp_path), TYPES))
    assert found.rows > 1000
    assert found.file_rows == pytest.approx(rows, rel=0.2)
    assert found.column_bytes["name"] < 20


def test_text_that_cannot_be_opened_is_guessed(tmp_path: Path) -> None:
    for end in ("gz", "bz2", "deflate", "zst"):
        folder = tmp_path / end
        folder.mkdir()
        (folder / f"a.json.{end}").write_bytes(b"\n\n no such thing \n" * 100)
        assert sample_of(FileScan("json", str(folder), TYPES)).rows == 0


def test_rows_of_several_lines_are_not_counted_by_lines(tmp_path: Path) -> None:
    folder_of(tmp_path)
    assert sample_of(FileScan("json", str(tmp_path), TYPES, in_lines=False)).rows == 0


@pytest.mark.parametrize("beside", ["_spark_metadata/0", ".x/0", "_SUCCESS", ".a.json.crc"])
def test_what_spark_passes_over_is_not_the_sample(beside: str, tmp_path: Path) -> None:
    folder_of(tmp_path / "day=1" / "_of=2")
    other = tmp_path / beside
    folder_of(other.parent, other.name, "v1\n{}\n")
    assert sample_of(FileScan("json", str(tmp_path), TYPES)).rows == 1000


def test_other_files_of_the_folder_are_not_the_sample(tmp_path: Path) -> None:
    folder_of(tmp_path)
    folder_of(tmp_path, "a.csv", "1,a\n" * 7)
    (tmp_path / "0.json").touch()  # nothing is in it yet
    assert sample_of(FileScan("json", str(tmp_path), TYPES, "*.json")).rows == 1000


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}", "{}/*.json", "file:{}/a.js??"])
def test_a_place_is_what_hadoop_takes_it_for(form: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "of 50% #1%20")
    assert sample_of(FileScan("json", form.format(folder), TYPES)).rows == 1000


def test_columns_of_files_may_be_in_another_case_or_twice(tmp_path: Path) -> None:
    columns = [pa.array([1]), pa.array([2]), pa.array(["x" * 100]), pa.array([3])]
    parquet.write_table(pa.table(columns, ["ID", "id", "Name", "other"]), tmp_path / "a.parquet")
    found = sample_of(FileScan("parquet", str(tmp_path), TYPES))
    assert dict(found.column_bytes) == {"id": 8.0, "name": 108.0}


@pytest.mark.parametrize("alike", [True, False])
def test_of_wide_rows_few_are_read(tmp_path: Path, alike: bool) -> None:
    names = [f"{0 if alike else i:09}" * 10_000 for i in range(1000)]
    table = pa.table({"id": list(range(1000)), "name": names})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=100)
    found = sample_of(FileScan("parquet", str(tmp_path), TYPES))
    assert found.file_rows == 1000
    assert 0 < found.rows * found.column_bytes["name"] < 3 * TABLE_BYTES
