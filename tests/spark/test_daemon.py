"""Python processes that a JVM starts: where they find PySpark, and what they do not import."""

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from penstock.spark.cluster.import_path import without_copies

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


START = Path(without_copies.__code__.co_filename).with_name("python_start")
ARCHIVE = Path(pyspark.__file__).parent / "python/lib/pyspark.zip"


def said_by_a_process(code: str, *path: Path | str, arguments: tuple[str, ...] = ()) -> str:
    """Of a Python process with so much first in its path."""
    searched = os.pathsep.join([*map(str, path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": searched},
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("theirs", [[], ["theirs"]], ids=["ours alone", "and theirs"])
def test_processes_of_a_jvm_begin_with_installed_files_and_with_what_others_customise(
    tmp_path: Path, theirs: list[str]
) -> None:
    for said in theirs:
        (tmp_path / "sitecustomize.py").write_text(f"print({said!r})")
    code = "import pyspark, sys; print(pyspark.__file__, *sys.path)"
    said = said_by_a_process(code, ARCHIVE, START, tmp_path)
    assert said.splitlines()[:-1] == theirs
    assert str(ARCHIVE) not in said
    assert str(START) not in said


def test_a_process_of_a_source_imports_only_what_it_needs() -> None:
    sources = "penstock.spark.sources.reader, penstock.spark.sources.generator_source"
    code = f"import sys, {sources}; print(*({{'pandas', 'jsonschema'}} & sys.modules.keys()))"
    assert said_by_a_process(code).strip() == ""


PLANNING = "pyspark.sql.worker.plan_data_source_read"
SOURCE = "penstock.spark.sources.reader"


@pytest.mark.parametrize(
    ("arguments", "imported"),
    [
        (("pyspark.daemon", PLANNING), [PLANNING, SOURCE]),
        (("pyspark.daemon", "pyspark.worker"), []),  # that of tasks, which has a daemon of ours
        (("pyspark.daemon", "pyspark.sql.worker.none"), []),
        ((), []),
    ],
)
def test_what_planning_asks_of_sources_is_imported_before_forking(
    arguments: tuple[str, ...], imported: list[str]
) -> None:
    code = f"import sys; print(*[name for name in {[PLANNING, SOURCE]} if name in sys.modules])"
    assert said_by_a_process(code, ARCHIVE, START, arguments=arguments).split() == imported


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
