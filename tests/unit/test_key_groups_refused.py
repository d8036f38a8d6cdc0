"""Checkpoints whose number of key groups cannot be changed, refused before Spark starts."""

import json
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from penstock.errors import InvalidInput, InvalidTopology, Unavailable
from penstock.model.plan import Component, QueryPlan, TopologyPlan
from penstock.spark.checkpoint import key_groups
from penstock.spark.checkpoint.key_groups import stored_queries
from penstock.spark.checkpoint.layout import Checkpoint
from penstock.spark.checkpoint.plan_record import PlanRecord
from penstock.spark.checkpoint.stored_query import PARTITIONS
from penstock.spark.handles.driver import STRICT


def spark_checkpoint(
    folder: Path, batches: int = 2, planned: int = 2, strict: str = "true"
) -> Path:
    for name, count in (("offsets", planned), ("commits", batches)):
        (folder / name).mkdir(parents=True)
        for batch in range(count):
            settings = {"conf": {PARTITIONS: "200", STRICT: strict}}
            (folder / name / str(batch)).write_text(f"v1\n{json.dumps(settings)}\n{{}}")
    (folder / "state/0").mkdir(parents=True)
    return folder


def test_a_checkpoint_that_can_be_changed_is_found(tmp_path: Path) -> None:
    (found,) = stored_queries(spark_checkpoint(tmp_path / "c"), 8)
    assert (found.key_groups, found.batch) == (200, 1)


def test_a_number_that_it_has_already_changes_nothing(tmp_path: Path) -> None:
    assert stored_queries(spark_checkpoint(tmp_path / "c"), 200) == ()


def test_a_folder_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is no checkpoint"):
        stored_queries(tmp_path, 8)


def test_one_query_of_a_run_is_not_changed_alone(tmp_path: Path) -> None:
    query = spark_checkpoint(tmp_path / "queries/q")
    (tmp_path / "penstock").mkdir()
    (tmp_path / "penstock/identity.json").write_text('{"key_groups": 200}')
    with pytest.raises(InvalidInput, match=f"give the run's checkpoint, {tmp_path}"):
        stored_queries(query, 8)


def test_a_query_without_penstock_may_lie_in_a_folder_of_any_name(tmp_path: Path) -> None:
    (found,) = stored_queries(spark_checkpoint(tmp_path / "queries/q"), 8)
    assert found.name == "q"


def test_a_batch_that_may_be_written_is_finished_first(tmp_path: Path) -> None:
    with pytest.raises(InvalidTopology, match="batch 2 was begun and not finished; start it"):
        stored_queries(spark_checkpoint(tmp_path / "c", planned=3), 8)


def test_state_that_part_of_a_key_divides_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidTopology, match="divided by part of its keys"):
        stored_queries(spark_checkpoint(tmp_path / "c", strict="false"), 8)


def test_fused_components_are_refused_with_what_to_do(tmp_path: Path) -> None:
    ours = tmp_path / "penstock"
    ours.mkdir(parents=True)
    (ours / "identity.json").write_text('{"key_groups": 8}')
    plan = TopologyPlan((QueryPlan("q", (Component("a", ("a", "b"), ("k",)),), ("s",), "append"),))
    fused = {"components": [["a", ["k"], ["a", "b"]]], "key_groups": 8}
    record = PlanRecord(plan, {"q": fused}, {})
    (ours / "plan.json").write_text(json.dumps(record.to_json()))
    with pytest.raises(InvalidTopology, match=r"has a \+ b fused by \(k\) .*--plan none --apply"):
        stored_queries(tmp_path, 16)


def test_a_query_that_runs_meanwhile_keeps_its_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = spark_checkpoint(tmp_path / "c")

    def divided(*_: object) -> key_groups.ChangedQuery:
        (tmp_path / "c.new-key-groups").mkdir()
        (folder / "offsets/2").write_text((folder / "offsets/1").read_text())
        return key_groups.ChangedQuery("c", 200, 8, 1, str(folder))

    monkeypatch.setattr(key_groups, "_divided", divided)
    with pytest.raises(Unavailable, match="is in use: batch 2 was planned while"):
        key_groups.change_key_groups(cast("SparkSession", None), folder, 8)
    assert [one.name for one in tmp_path.iterdir()] == ["c"]


def test_a_checkpoint_that_a_run_holds_is_refused(tmp_path: Path) -> None:
    with Checkpoint(tmp_path) as held:
        held.check_identity({"key_groups": 200})
        with pytest.raises(Unavailable, match="is in use by another run"):
            stored_queries(tmp_path, 8)
        with pytest.raises(Unavailable, match="is in use by another run"):
            key_groups.change_key_groups(cast("SparkSession", None), tmp_path, 8)


def test_what_was_copied_by_a_change_cut_short_goes(tmp_path: Path) -> None:
    folder = spark_checkpoint(tmp_path / "c")
    (tmp_path / "c.new-key-groups/commits").mkdir(parents=True)
    (tmp_path / "c.new-key-groups/commits/1").touch()
    (tmp_path / "c.new-key-groups/state").mkdir()
    assert key_groups.change_key_groups(cast("SparkSession", None), folder, 200) == ()
    assert [one.name for one in tmp_path.iterdir()] == ["c"]
