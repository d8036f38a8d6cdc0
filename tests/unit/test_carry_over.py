"""The files of a checkpoint that is carried over to another plan."""

import json
from pathlib import Path

from penstock.spark.checkpoint.carried_state import _add_batch, forget_after, next_directory
from penstock.spark.handles.driver import STRICT


def offsets(folder: Path, *batches: int) -> None:
    for batch in batches:
        settings = {"batchWatermarkMs": 7, "conf": {STRICT: "true", "other": "1"}}
        (folder / str(batch)).write_text(f'v1\n{json.dumps(settings)}\n{{"row": {batch}}}')
        (folder / f".{batch}.crc").write_text("x")


def test_a_batch_that_was_only_planned_is_forgotten_with_its_checksum(tmp_path: Path) -> None:
    offsets(tmp_path, 3, 4, 5)
    forget_after(tmp_path, 4)
    assert sorted(file.name for file in tmp_path.iterdir()) == [".3.crc", ".4.crc", "3", "4"]


def test_the_batch_in_between_reads_nothing_and_has_the_new_setting(tmp_path: Path) -> None:
    offsets(tmp_path, 4)
    _add_batch(tmp_path, 4, strict=False)
    head, settings, offset = (tmp_path / "5").read_text().split("\n")
    assert (head, offset) == ("v1", '{"row": 4}')
    assert json.loads(settings) == {
        "batchWatermarkMs": 7,
        "conf": {STRICT: "false", "other": "1"},
    }


def test_each_plan_of_a_query_has_its_own_directory() -> None:
    assert next_directory("a.plan", Path("a.plan")) == "a.plan.plan1"
    assert next_directory("a.plan", Path("a.plan.plan9")) == "a.plan.plan10"
