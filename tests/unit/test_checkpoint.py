"""A run's directory: one owner, and what may not change from run to run."""

import json
import stat
from pathlib import Path

import pytest

from penstock.errors import InvalidInput, InvalidTopology, Unavailable
from penstock.spark.checkpoint.layout import Checkpoint
from penstock.spark.checkpoint.superseded import Superseded

IDENTITY = {"topology": "road", "key_groups": 4, "schema": {"speeds": "struct<speed:double>"}}


def test_one_run_owns_a_directory_at_a_time(tmp_path: Path) -> None:
    directory = tmp_path / "c"
    with (
        Checkpoint(directory),
        pytest.raises(Unavailable, match="in use by another run"),
        Checkpoint(directory),
    ):
        pass
    with Checkpoint(tmp_path / "c"):
        pass


def test_it_is_private(tmp_path: Path) -> None:
    with Checkpoint(tmp_path / "c") as checkpoint:
        checkpoint.epoch_s(5.0)
    assert stat.S_IMODE((tmp_path / "c").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "c/penstock/epoch.json").stat().st_mode) == 0o600


def test_the_epoch_is_that_of_the_first_start(tmp_path: Path) -> None:
    for now_s in (100.0, 200.0):
        with Checkpoint(tmp_path) as checkpoint:
            assert checkpoint.epoch_s(now_s) == 100.0


def test_the_same_topology_is_welcome_again(tmp_path: Path) -> None:
    for _ in range(2):
        with Checkpoint(tmp_path) as checkpoint:
            checkpoint.check_identity(IDENTITY)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"key_groups": 8}, ["key_groups 4", "not 8"]),
        ({"topology": "rail"}, ["topology 'road'", "not 'rail'"]),
        ({"schema": {"speeds": "struct<speed:int>"}}, ["operator 'speeds': schema was", "int"]),
        ({"schema": {}}, ["operator 'speeds'", "absent"]),
        ({"sink": {"out": ["speeds", "road", "append"]}}, ["sink 'out': it was absent"]),
    ],
)
def test_another_topology_is_refused_with_what_differs(
    tmp_path: Path, change: dict[str, object], words: list[str]
) -> None:
    with Checkpoint(tmp_path) as checkpoint:
        checkpoint.check_identity(IDENTITY)
        with pytest.raises(InvalidTopology) as refusal:
            checkpoint.check_identity({**IDENTITY, **change})
    assert all(word in str(refusal.value) for word in words)


def test_a_damaged_directory_is_refused(tmp_path: Path) -> None:
    with Checkpoint(tmp_path) as checkpoint:
        checkpoint.check_identity(IDENTITY)
        for damage in ("{", json.dumps([1])):
            (tmp_path / "penstock/identity.json").write_text(damage)
            with pytest.raises(InvalidInput, match="is damaged"):
                checkpoint.check_identity(IDENTITY)


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("")
    with pytest.raises(InvalidInput, match="cannot be used"), Checkpoint(tmp_path / "c"):
        pass


def test_a_directory_that_was_there_keeps_its_permissions(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o2775)
    with Checkpoint(shared):
        pass
    assert stat.S_IMODE(shared.stat().st_mode) == 0o2775
    for ours in ("penstock", "queries"):
        assert stat.S_IMODE((shared / ours).stat().st_mode) & 0o077 == 0


def planned(directory: str, superseded: list[str]) -> dict[str, object]:
    query = {"name": "road", "components": [], "sinks": [], "output_mode": "append"}
    return {
        "plan": {"queries": [query]}, "fingerprints": {}, "directories": {"road": directory},
        "superseded": {"road": superseded},
    }  # fmt: skip


def test_all_that_a_query_left_goes_once_a_batch_has_committed(tmp_path: Path) -> None:
    with Checkpoint(tmp_path) as checkpoint:
        for name in ("road", "road.plan1", "road.plan2"):
            (tmp_path / "queries" / name).mkdir()
        checkpoint.record_plan(planned("road.plan2", ["road", "road.plan1"]))
        superseded = Superseded(checkpoint)
        superseded.batch_written("road", 5)
        assert (tmp_path / "queries/road").exists(), "batch 5 is written, and not committed"
        superseded.batch_written("road", 6)
        assert [one.name for one in (tmp_path / "queries").iterdir()] == ["road.plan2"]
        assert checkpoint.superseded() == {}
        assert checkpoint.query_folder("road").name == "road.plan2"


def test_what_a_query_goes_on_with_is_never_removed(tmp_path: Path) -> None:
    with Checkpoint(tmp_path) as checkpoint:
        (tmp_path / "queries/road").mkdir()
        checkpoint.record_plan(planned("road", ["road", "road.plan1"]))
        checkpoint.forget_superseded("road")
        assert (tmp_path / "queries/road").exists()
        assert checkpoint.superseded() == {}
