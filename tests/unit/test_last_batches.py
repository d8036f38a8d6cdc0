"""Whether a batch that Spark did not finish may have reached a sink, over several runs."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from penstock.model.sinks import Files, ForeachBatch, Sink
from penstock.model.topology import SinkBinding
from penstock.spark.checkpoint.carried_state import _may_be_written
from penstock.spark.checkpoint.last_batches import LastBatches
from penstock.spark.checkpoint.layout import Checkpoint
from penstock.spark.checkpoint.plan_record import PlannedQuery
from penstock.spark.sinks.batch_writer import BatchCalls, BatchWriter
from penstock.spark.sinks.commit_records import CommitRecords
from reliability.fake_batches import FakeBatch, FakeQuery

SEEN = ForeachBatch(lambda _rows, _id: None)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    with Checkpoint(tmp_path) as checkpoint:
        checkpoint.check_identity({"topology": "road"})
        checkpoint.epoch_s(0.0)
        checkpoint.writer_id()
    log(tmp_path, 5)
    return tmp_path


def log(directory: Path, planned: int, committed: int = 5) -> None:
    for name, last in (("offsets", planned), ("commits", committed)):
        folder = directory / "queries/road" / name
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(last + 1):
            (folder / str(number)).touch()


def run(directory: Path, planned: int, handed: int | None, killed: bool = False) -> None:
    with Checkpoint(directory) as checkpoint:
        last = LastBatches(checkpoint, ["road"])
        log(directory, planned)
        if not killed:
            last.ended({"road": handed})


def may_be_written(directory: Path, batch: int, sink: Sink = SEEN) -> bool:
    query = SimpleNamespace(
        plan=SimpleNamespace(name="road"), sinks=(SinkBinding("out", "rows", sink),)
    )
    with Checkpoint(directory) as checkpoint:
        commits = checkpoint.commits("road")
        handed = checkpoint.last_handed()
        return _may_be_written(cast("PlannedQuery", query), commits, batch, handed)


def test_a_batch_that_a_killed_run_left_open_stays_open_after_a_run_that_wrote_nothing(
    directory: Path,
) -> None:
    run(directory, planned=6, handed=6, killed=True)
    assert may_be_written(directory, 6)
    run(directory, planned=6, handed=None)
    assert may_be_written(directory, 6)
    run(directory, planned=6, handed=6)
    assert may_be_written(directory, 6)


def test_a_batch_that_was_planned_and_handed_to_nobody_is_free(directory: Path) -> None:
    run(directory, planned=6, handed=5)
    assert not may_be_written(directory, 6)
    run(directory, planned=6, handed=None)
    assert not may_be_written(directory, 6)


def test_where_nothing_was_left_open_a_run_that_wrote_nothing_leaves_nothing(
    directory: Path,
) -> None:
    run(directory, planned=5, handed=5, killed=True)
    run(directory, planned=6, handed=None)
    assert not may_be_written(directory, 6)


def test_files_are_out_with_a_record_alone(directory: Path) -> None:
    run(directory, planned=6, handed=6)
    assert not may_be_written(directory, 6, Files(str(directory / "out")))
    with Checkpoint(directory) as checkpoint:
        (checkpoint.commits("road") / "6.json").touch()
    assert may_be_written(directory, 6, Files(str(directory / "out")))


def test_a_batch_counts_once_a_function_has_it_even_if_that_fails(tmp_path: Path) -> None:
    def fails(_rows: object, _id: int) -> None:
        raise ValueError("half of it is written")

    writer = BatchWriter(
        FakeQuery((SinkBinding("out", "rows", ForeachBatch(fails)),), stateful=False),
        CommitRecords(tmp_path),
        BatchCalls(lambda _: None, lambda: None, lambda _: None),
    )
    assert writer.handed is None
    with pytest.raises(ValueError, match="half of it"):
        writer(FakeBatch([1]), 6)  # type: ignore[arg-type]
    assert writer.handed == 6
