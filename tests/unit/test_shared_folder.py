"""A directory that executors on other hosts do not see is refused before anything is lost."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from pyspark.errors import PySparkException

from penstock.errors import InvalidInput
from penstock.model.sinks import Console, Files
from penstock.model.topology import Topology
from penstock.spark import handles
from penstock.spark.run import shared_folder
from penstock.spark.run.shared_folder import LaterHosts, folders_of, refuse_what_is_not_shared

HERE = "10.0.0.1"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that executors were asked for; those on `far` see none."""
    files: list[Path] = []

    def hosts_without(_: Any, signs: list[Path], tasks: int) -> list[list[str]]:
        assert all(file.exists() for file in signs), "they are there while executors are asked"
        assert tasks == 2
        files.extend(signs)
        return [[] if (file.parent / "mounted").exists() else ["far"] for file in signs]

    monkeypatch.setattr(shared_folder, "hosts_without", hosts_without)
    return files


def session_on(monkeypatch: pytest.MonkeyPatch, *hosts: str) -> Any:
    found = [SimpleNamespace(host=host, active=True, cores=1) for host in hosts]
    monkeypatch.setattr(handles, "executors", lambda _: found)
    session = Mock()
    session.sparkContext.getConf().get.return_value = HERE
    return session


def test_a_checkpoint_that_is_not_shared_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, asked: list[Path]
) -> None:
    session = session_on(monkeypatch, HERE, "10.0.0.2")
    with pytest.raises(InvalidInput, match=r"executors on far do not see .* mounted at the same"):
        refuse_what_is_not_shared(session, {"checkpoint": tmp_path / "new" / "checkpoint"})
    assert [file.parent for file in asked] == [tmp_path], "where the checkpoint will be made"
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_one_that_has_begun_is_looked_for_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, asked: list[Path]
) -> None:
    (tmp_path / "checkpoint").mkdir()
    with pytest.raises(InvalidInput):
        refuse_what_is_not_shared(
            session_on(monkeypatch, "10.0.0.2", "10.0.0.3"), {"checkpoint": tmp_path / "checkpoint"}
        )
    assert [file.parent.name for file in asked] == ["checkpoint"]


def test_executors_on_the_drivers_host_are_not_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, asked: list[Path]
) -> None:
    refuse_what_is_not_shared(session_on(monkeypatch, HERE, HERE), {"checkpoint": tmp_path})
    assert asked == []


def test_a_sink_that_is_not_shared_is_refused_by_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, asked: list[Path]
) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "mounted").touch()
    road = Topology("road", max_latency="5s")
    road.source("cars", lambda session: session)
    road.sink("tolls", "cars", Files(str(tmp_path / "local" / "tolls")))
    road.sink("seen", "cars", Console())
    folders = folders_of(road, tmp_path / "shared" / "checkpoint")
    assert list(folders) == ["checkpoint", "sink 'tolls'"]
    with pytest.raises(InvalidInput, match=r"sink 'tolls' is .*tolls', but executors on far do"):
        refuse_what_is_not_shared(session_on(monkeypatch, HERE, "10.0.0.2"), folders)
    assert [file.parent for file in asked] == [tmp_path / "shared", tmp_path]
    assert not list(tmp_path.rglob(".seen-*")), "nothing is left behind"


def test_a_remote_store_is_shared_and_a_file_url_is_the_directory_it_names(tmp_path: Path) -> None:
    road = Topology("road", max_latency="5s")
    road.source("cars", lambda session: session)
    road.sink("bucket", "cars", Files("s3a://bucket/tolls"))
    road.sink("name_node", "cars", Files("hdfs://far:8020/tolls"))
    road.sink("tolls", "cars", Files(f"file://{tmp_path}/some%20tolls"))
    folders = folders_of(road, tmp_path / "checkpoint")
    assert folders == {
        "checkpoint": tmp_path / "checkpoint", "sink 'tolls'": tmp_path / "some tolls",
    }  # fmt: skip


def test_a_directory_that_cannot_be_written_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, asked: list[Path]
) -> None:
    def refused(_: Path, mode: int = 0o666) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "touch", refused)
    with pytest.raises(InvalidInput, match=r"cannot be written: Permission denied\."):
        refuse_what_is_not_shared(
            session_on(monkeypatch, HERE, "10.0.0.2"), {"checkpoint": tmp_path}
        )
    assert asked == []


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads of the room run where they are started."""

    def thread(target: Any, args: tuple[Any, ...], **_: Any) -> Any:
        return SimpleNamespace(start=lambda: target(*args))

    monkeypatch.setattr(shared_folder.threading, "Thread", thread)


@pytest.mark.usefixtures("at_once")
def test_hosts_that_come_later_are_asked_once(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    asked: list[Path],
    caplog: pytest.LogCaptureFixture,
) -> None:
    folders = {"checkpoint": tmp_path}
    session = session_on(monkeypatch, HERE)
    later = LaterHosts(session, folders, refuse_what_is_not_shared(session, folders))
    later.look(["0"])
    assert asked == []
    session_on(monkeypatch, HERE, "10.0.0.2")
    for _ in range(3):
        later.look(["0", "1"])
    (line,) = caplog.messages
    assert line.startswith("executors came on other hosts: checkpoint is ")
    assert "executors on far do not see" in line
    later.look(["0"])
    later.look(["0", "2"])  # on the same host again
    assert len(asked) == len(caplog.messages) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("at_once", "asked")
def test_spark_is_not_asked_for_executors_while_there_are_no_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    later = LaterHosts(session_on(monkeypatch, HERE), {"checkpoint": tmp_path}, frozenset())
    later.look(["0", "1"])
    monkeypatch.setattr(handles, "executors", Mock(side_effect=AssertionError))
    later.look(["0", "1"])
    later.look(["1"])


@pytest.mark.usefixtures("at_once")
def test_what_later_hosts_see_may_stay_unknown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def cancelled(*_: Any) -> None:
        raise PySparkException("the session was stopped")

    monkeypatch.setattr(shared_folder, "hosts_without", cancelled)
    session = session_on(monkeypatch, "10.0.0.2")
    LaterHosts(session, {"checkpoint": tmp_path}, frozenset()).look(["0"])
    assert "what they see is not known: " in caplog.text
    assert list(tmp_path.iterdir()) == []
