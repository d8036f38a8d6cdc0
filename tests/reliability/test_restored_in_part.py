"""A checkpoint of which a part is of another time: refused, and nothing is written twice."""

import json
import shutil
from pathlib import Path

import pytest

from penstock.errors import InvalidInput
from penstock.model.plan import TopologyPlan
from penstock.model.sinks import Files, ToChannel
from penstock.model.topology import SinkBinding
from penstock.spark.checkpoint.layout import FIXED, Checkpoint, begun, refuse_if_in_use
from penstock.spark.checkpoint.plan_record import PlanRecord
from penstock.spark.sinks.batch_writer import BatchCalls, BatchWriter, ChannelSide
from penstock.spark.sinks.commit_records import CommitRecords

from .fake_batches import FakeBatch, FakeQuery


class Run:
    """Batches into files and a channel; Spark's log beside our records."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.offsets, self.records = directory / "offsets", directory / "records"
        self.offsets.mkdir()
        self.records.mkdir()
        self.start()

    def start(self) -> None:
        files = Files(str(self.directory / "out"), "json")
        channel = ToChannel(str(self.directory / "channel"))
        self.writer = BatchWriter(
            FakeQuery(
                (SinkBinding("files", "rows", files), SinkBinding("channel", "rows", channel))
            ),
            CommitRecords(self.records, self.offsets),
            BatchCalls(lambda _: None, lambda: None, lambda _: None),
            ChannelSide("w", lambda _: None),
        )
        self.writer.refuse_what_is_ahead()

    def batch(self, number: int, *rows: int) -> None:
        (self.offsets / str(number)).write_text(json.dumps(rows))
        self.writer(FakeBatch(list(rows)), number)  # type: ignore[arg-type]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Batch 1 puts out nothing."""
    made = Run(tmp_path)
    for number, rows in enumerate([(0,), (), (2, 3)]):
        made.batch(number, *rows)
    return made


def test_records_behind_the_log_of_offsets_are_refused(run: Run) -> None:
    for number in (1, 2):
        (run.offsets / str(number)).unlink()
    with pytest.raises(InvalidInput, match=r"batch 2 was written before .*2\.json.* with batch 0:"):
        run.start()
    (run.offsets / "0").unlink()
    with pytest.raises(InvalidInput, match="is empty: the checkpoint was restored in part"):
        run.start()


@pytest.mark.parametrize(
    ("what", "instead"),
    [("out/batch=2", "remove what is later"), ("channel", "another checkpoint and")],
)
def test_outputs_behind_it_are_refused_where_records_were_restored_as_well(
    run: Run, what: str, instead: str
) -> None:
    for file in (run.offsets / "1", run.offsets / "2", run.records / "2.json"):
        file.unlink()
    if what == "channel":
        (run.directory / "out/batch=2").rename(run.directory / "moved away")
    with pytest.raises(InvalidInput, match=rf"batch 2 was written before \(.*{what}\).*{instead}"):
        run.start()


def test_a_batch_that_is_written_and_not_committed_comes_again(run: Run) -> None:
    run.start()
    run.batch(2, 2, 3)
    run.batch(3)
    run.start()


def test_a_batch_of_the_same_number_over_other_rows_is_refused(run: Run) -> None:
    run.start()
    with pytest.raises(InvalidInput, match="batch 2 was committed before"):
        run.batch(2, 9)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Of a run with one query, whose state was moved."""
    folder = tmp_path / "checkpoint"
    with Checkpoint(folder) as made:
        made.epoch_s(1.0)
        made.check_identity({"topology": "road"})
        made.writer_id()
        made.record_plan(PlanRecord(TopologyPlan(()), {}, {"road": "road.plan1"}).to_json())
        for log in ("offsets", "commits"):
            (made.query_folder("road") / log).mkdir(parents=True)
            (made.query_folder("road") / log / "0").write_text("v1")
    return folder


def test_a_checkpoint_that_is_whole_is_welcome(checkpoint: Path) -> None:
    refuse_if_in_use(checkpoint)
    with Checkpoint(checkpoint) as again:
        assert again.epoch_s(2.0) == 1.0


@pytest.mark.parametrize("name", FIXED)
def test_batches_without_what_they_were_begun_with_are_refused(checkpoint: Path, name: str) -> None:
    (checkpoint / f"penstock/{name}.json").unlink()
    with (
        pytest.raises(
            InvalidInput, match=rf"in part: .*road\.plan1 has .*{name}\.json is missing;"
        ),
        Checkpoint(checkpoint),
    ):
        pass
    assert not (checkpoint / f"penstock/{name}.json").exists()
    refuse_if_in_use(checkpoint.with_name("none"))
    with pytest.raises(InvalidInput, match="restore all of it from the same time"):
        refuse_if_in_use(checkpoint)


def test_a_run_goes_on_also_where_only_its_batches_are_left(checkpoint: Path) -> None:
    shutil.rmtree(checkpoint / "penstock")
    assert begun(checkpoint)
    with pytest.raises(InvalidInput, match="has batches, and"):
        refuse_if_in_use(checkpoint)


def test_a_query_that_would_begin_anew_beside_its_batches_is_refused(checkpoint: Path) -> None:
    (checkpoint / "penstock/plan.json").unlink()
    with (
        pytest.raises(InvalidInput, match=r"plan\.json is missing or older, so .*/road is to go"),
        Checkpoint(checkpoint),
    ):
        pass
