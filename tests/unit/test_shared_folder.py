"""A directory that executors on other hosts do not see is refused before anything is lost."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from penstock.errors import InvalidInput
from penstock.model.sinks import Console, Files
from penstock.model.topology import Topology
from penstock.spark import handles
from penstock.spark.run import shared_folder
from penstock.spark.run.shared_folder import folders_of, refuse_what_is_not_shared

HERE = "10.0.0.1"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that executors were asked for; those on `far` see none."""
    files: list[Path] = []

    def hosts_without(_: Any, signs: list[Path], executors: int) -> list[list[str]]:
        assert all(file.exists() for file in signs), "they are there while executors are asked"
        assert executors == 2
        files.extend(signs)
        return [[] if (file.parent / "mounted").exists() else ["far"] for file in signs]

    monkeypatch.setattr(shared_folder, "hosts_without", hosts_without)
    return files


def session_on(monkeypatch: pytest.MonkeyPatch, *hosts: str) -> Any:
    found = [SimpleNamespace(host=host, active=True) for host in hosts]
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
