"""The process that workers are forked from: where it finds PySpark."""

import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.spark.cluster.daemon import without_copies

KEY_GROUPS = 2


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with a PySpark in it, and an archive of that beside its files."""
    (tmp_path / "pyspark/python/lib").mkdir(parents=True)
    (tmp_path / "pyspark/__init__.py").touch()
    (tmp_path / "pyspark/python/lib/pyspark.zip").touch()
    (tmp_path / "theirs.zip").touch()
    return tmp_path


def test_archives_of_an_installed_pyspark_are_left_out(installed: Path) -> None:
    archive = str(installed / "pyspark/python/lib/pyspark.zip")
    theirs = str(installed / "theirs.zip")
    assert without_copies([archive, theirs, str(installed)]) == [theirs, str(installed)]


def test_a_pyspark_that_is_nowhere_else_stays(installed: Path) -> None:
    archive = str(installed / "pyspark/python/lib/pyspark.zip")
    assert without_copies([archive, "/nowhere"]) == [archive, "/nowhere"]


def test_an_archive_of_another_pyspark_stays(installed: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "other/python/lib/pyspark.zip"
    assert without_copies([str(elsewhere), str(installed)]) == [str(elsewhere), str(installed)]


@pytest.mark.spark
def test_workers_import_compiled_files(session: SparkSession) -> None:
    def seen_by_task(batches: object) -> object:
        import pyarrow as pa
        import pyspark

        archives = [entry for entry in sys.path if "pyspark" in entry and entry.endswith(".zip")]
        yield pa.RecordBatch.from_pydict({"text": [pyspark.__file__, *archives]})

    rows = session.range(0, 1, 1, 1).mapInArrow(seen_by_task, "text STRING").collect()
    assert len(rows) == 1
    assert ".zip" not in rows[0].text
