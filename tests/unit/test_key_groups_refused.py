"""Checkpoints whose number of key groups cannot be changed, refused before Spark starts."""

import json
from pathlib import Path

import pytest

from penstock.errors import InvalidInput, InvalidTopology
from penstock.model.plan import Component, QueryPlan, TopologyPlan
from penstock.spark.checkpoint.key_groups import PARTITIONS, stored_queries
from penstock.spark.checkpoint.plan_record import PlanRecord
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
