"""A checkpoint restored in part: a batch of the same number over other rows is not swallowed."""

import json
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.errors import PenstockError
from penstock.model.sinks import Files, Sink, ToChannel
from penstock.model.topology import Topology
from penstock.spark.channels.chunks import read_piece
from penstock.spark.channels.log import Channel
from penstock.spark.run.together import RunningTopology
from spark.counting import ONCE
from spark.run_to import LIMIT_S

pytestmark = pytest.mark.spark

KEY_GROUPS = 2


class Place:
    """Files that come in, a run over what is there, and what came out."""

    def __init__(self, directory: Path, session: SparkSession) -> None:
        self.directory, self.session = directory, session
        self.incoming = directory / "incoming"
        self.incoming.mkdir()
        self.checkpoint = directory / "checkpoint"

    def arrive(self, name: str, *numbers: int) -> None:
        lines = [json.dumps({"n": number}) for number in numbers]
        (self.incoming / name).write_text("\n".join(lines))

    def run(self, sink: Sink) -> None:
        made = Topology("copied", max_latency="30s")

        def rows(session: SparkSession) -> DataFrame:
            return session.readStream.schema("n BIGINT").json(str(self.incoming)).where("n > 0")

        made.source("rows", rows)
        made.sink("out", "rows", sink)
        with RunningTopology(made, self.session, self.checkpoint, ONCE) as running:
            assert running.wait(LIMIT_S)

    def forget(self, pattern: str) -> None:
        """Remove files of the checkpoint, as if they had not been restored."""
        found = list(self.checkpoint.glob(pattern))
        assert found
        for file in found:
            file.unlink()
            (file.parent / f".{file.name}.crc").unlink(missing_ok=True)

    def forget_batch(self, number: int) -> None:
        """What Spark knows of a batch, and with it the files it was read from."""
        for folder in ("commits", "offsets", "sources/0"):
            self.forget(f"queries/*/{folder}/{number}")

    def out(self) -> list[int]:
        files = [str(file) for file in (self.directory / "out").glob("batch=*/*.parquet")]
        return sorted(ds.dataset(files).to_table().to_pydict()["n"])

    def published(self) -> list[int]:
        channel = Channel(self.directory / "out")
        batches = [b for piece in channel.pieces(0, channel.end_row()) for b in read_piece(piece)]
        return [n for batch in batches for n in batch.column("n").to_pylist()]


@pytest.fixture
def place(tmp_path: Path, session: SparkSession) -> Place:
    made = Place(tmp_path, session)
    made.arrive("a.json", 1, 2)
    return made


def test_a_batch_that_is_repeated_over_the_same_offsets_passes(place: Place) -> None:
    sink = Files(str(place.directory / "out"))
    place.run(sink)
    place.arrive("b.json", 3, 4)
    place.run(sink)
    place.forget("queries/*/commits/1")
    place.run(sink)
    place.arrive("c.json", 5)
    place.run(sink)
    assert place.out() == [1, 2, 3, 4, 5]


def test_a_batch_over_other_offsets_than_its_record_is_refused(place: Place) -> None:
    sink = Files(str(place.directory / "out"))
    place.run(sink)
    place.arrive("b.json", 3, 4)
    place.run(sink)
    place.forget_batch(1)
    (place.incoming / "b.json").unlink()
    place.arrive("c.json", 5, 6, 7)
    with pytest.raises(PenstockError, match="batch 1 was written before") as refusal:
        place.run(sink)
    assert "restored in part" in str(refusal.value)
    assert "from the same time" in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert place.out() == [1, 2, 3, 4]
    # What the sentence says can be done: the batch is written anew.
    place.forget("penstock/commits/*/1.json")
    for file in (place.directory / "out/batch=1").iterdir():
        file.unlink()
    (place.directory / "out/batch=1").rmdir()
    place.run(sink)
    assert place.out() == [1, 2, 5, 6, 7]


def test_batches_without_rows_do_not_hide_those_behind_them(place: Place) -> None:
    sink = Files(str(place.directory / "out"))
    place.run(sink)
    place.arrive("b.json", -1)
    place.run(sink)  # without output, so without a record
    place.arrive("c.json", 3, 4)
    place.run(sink)
    place.forget_batch(2)
    place.forget_batch(1)
    with pytest.raises(PenstockError, match=r"batch 2 was written before .* ends with batch 0"):
        place.run(sink)
    place.forget("penstock/commits/*/2.json")
    with pytest.raises(PenstockError, match=r"batch 2 was written before .*out/batch=2"):
        place.run(sink)
    assert place.out() == [1, 2, 3, 4]


def test_a_record_of_before_offsets_were_noted_still_holds(place: Place) -> None:
    sink = Files(str(place.directory / "out"))
    place.run(sink)
    (record,) = place.checkpoint.glob("penstock/commits/*/0.json")
    record.write_text(json.dumps(json.loads(record.read_text())["sinks"]))
    place.forget("queries/*/commits/0")
    place.run(sink)
    assert place.out() == [1, 2]


def test_a_channel_refuses_a_batch_that_it_holds_of_other_offsets(place: Place) -> None:
    """The channel is elsewhere; the whole checkpoint is of an earlier time."""
    sink = ToChannel(str(place.directory / "out"))
    place.run(sink)
    place.arrive("b.json", 3, 4)
    place.run(sink)
    place.forget("queries/*/commits/1")
    place.forget("penstock/commits/*/1.json")
    place.run(sink)
    assert place.published() == [1, 2, 3, 4]
    place.forget_batch(1)
    place.forget("penstock/commits/*/1.json")
    place.arrive("c.json", 5, 6, 7)
    with pytest.raises(PenstockError, match=r"batch 1 was written before \(channel "):
        place.run(sink)
    assert place.published() == [1, 2, 3, 4]
