"""Spark's classes from an archive: used where it was made, not missed where it was not."""

import zipfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.spark.cluster import class_archive, java_classes, launch
from penstock.spark.handles.gateway import java_class

pytestmark = pytest.mark.spark


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine on which nothing was prepared."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_without_an_archive_jvms_start_as_they_are(elsewhere: Path) -> None:
    assert class_archive.java_options() == ""
    assert class_archive.jar() is None
    assert not class_archive.usable()
    command = launch.cluster_command(elsewhere, slots=1, memory_mb=512)
    assert launch.COMPILER in command, "the cluster's class is compiled as it starts"


def test_a_cluster_starts_from_the_class_that_was_prepared(elsewhere: Path) -> None:
    class_archive.write_jar({launch.CLUSTER: b"code"})
    command = launch.cluster_command(elsewhere, slots=1, memory_mb=512)
    assert launch.COMPILER not in command
    assert command[command.index("-cp") + 1].startswith(f"{class_archive.jar()}:")


def test_a_driver_maps_the_archive_that_was_prepared(session: SparkSession) -> None:
    if not class_archive.usable():
        pytest.skip("there is no archive: run `penstock prepare`")
    machine = java_class(session, "java.lang.management.ManagementFactory").getRuntimeMXBean()
    (archive,) = (word for word in machine.getInputArguments() if "SharedArchiveFile" in word)
    assert Path(archive.partition("=")[2]).exists()
    assert java_classes.class_path()["spark.driver.extraClassPath"] in machine.getClassPath()


def test_classes_are_packed_whole(elsewhere: Path) -> None:
    class_archive.write_jar({"penstock.LocalFiles": b"outer", "penstock.LocalFiles$In": b"inner"})
    made = class_archive.jar()
    assert made is not None
    with zipfile.ZipFile(made) as packed:
        assert packed.read("penstock/LocalFiles$In.class") == b"inner"
    assert {path.name for path in made.parent.iterdir()} == {"classes.jar", "spark-home"}


def test_a_jvm_ignores_what_is_no_archive(elsewhere: Path) -> None:
    class_archive.write_jar({})
    made = class_archive.jar()
    assert made is not None
    made.with_name("classes.jsa").write_bytes(b"nothing of the kind")
    assert not class_archive.usable()
    from penstock.spark.cluster.class_archive import _java

    assert _java(*class_archive.java_options().replace('"', "").split(), "-version") == ""


def test_archives_go_with_their_spark(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class_archive.write_jar({})
    kept = class_archive.jar()
    assert kept is not None
    monkeypatch.setattr(class_archive, "spark_home", lambda: elsewhere / "removed")
    class_archive.write_jar({})
    gone = class_archive.jar()
    assert gone is not None
    class_archive.forget_removed()
    assert kept.exists()
    assert not gone.exists()
