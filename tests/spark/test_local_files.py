"""The file system of checkpoints: Hadoop's, with permissions set by the JVM."""

import stat
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.spark.cluster import java_classes
from penstock.spark.handles.gateway import java_class

pytestmark = pytest.mark.spark

KEY_GROUPS = 2


@pytest.fixture
def files(session: SparkSession) -> Any:
    """A local file system as the driver makes it."""
    configuration = session.sparkContext._jsc.hadoopConfiguration()
    where = java_class(session, "java.net.URI")("file:///")
    return java_class(session, "org.apache.hadoop.fs.FileSystem").newInstance(where, configuration)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755, 0o1777])
def test_permissions_are_those_asked_for(
    mode: int, files: Any, session: SparkSession, tmp_path: Path
) -> None:
    assert files.getClass().getName() == java_classes.LOCAL_FILES
    (tmp_path / "made").touch(mode=0o666)
    permission = java_class(session, "org.apache.hadoop.fs.permission.FsPermission")
    path = java_class(session, "org.apache.hadoop.fs.Path")(str(tmp_path / "made"))
    files.setPermission(path, permission(f"{mode:o}"))
    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == mode


def test_files_are_made_with_the_umask_and_a_checksum(
    files: Any, session: SparkSession, tmp_path: Path
) -> None:
    path = java_class(session, "org.apache.hadoop.fs.Path")
    files.create(path(str(tmp_path / "made"))).close()
    (tmp_path / "plain").touch()
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert modes["made"] == modes[".made.crc"] == modes["plain"]


def test_without_a_place_for_the_class_files_are_made_as_hadoop_makes_them(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert java_classes.class_path() == {}
    assert java_classes.use_with({}) == {}


def test_the_class_is_compiled_whole_and_once(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = Path(java_classes.class_path()["spark.driver.extraClassPath"])
    assert java_classes.use_with({}) == {
        "spark.executor.extraClassPath": str(folder),
        "spark.hadoop.fs.file.impl": java_classes.LOCAL_FILES,
    }
    made = {file: file.stat().st_mtime_ns for file in folder.rglob("*.*")}
    assert {file.stem.partition("$")[0] for file in made} == {"LocalFiles", "Cluster", "WarmStart"}
    java_classes.use_with({})
    assert made == {file: file.stat().st_mtime_ns for file in folder.rglob("*.*")}


def test_a_class_path_that_a_user_gave_executors_is_left_alone(session: SparkSession) -> None:
    assert java_classes.use_with({"spark.executor.extraClassPath": "mine"}) == {}
