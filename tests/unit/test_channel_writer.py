"""ChannelWriter, for queries written without Penstock: an entry is bound to its offsets."""

import errno
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock import ChannelWriter
from penstock.errors import InvalidInput, PenstockError
from penstock.spark import handles
from penstock.spark.channels import published, publishing
from penstock.spark.channels.log import Channel
from reliability.crash_points import At, Stopped, stop, watched
from reliability.fake_batches import SCHEMA, FakeBatch

QUERY = "6f0cd4a5-7b42-4f4e-bd59-2d3d1f6d1a11"


class Handed(FakeBatch):
    """A batch as foreachBatch hands it on."""

    query: str | None = QUERY

    @property
    def sparkSession(self) -> Any:
        context = SimpleNamespace(getLocalProperty=lambda _: self.query)
        return SimpleNamespace(sparkContext=context)


class Unnamed(Handed):
    """One that came from nowhere."""

    query = None


@pytest.fixture
def offsets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Spark's log of the query, below a folder whose name is not the same as a URI."""
    folder = tmp_path / "my query" / "offsets"
    folder.mkdir(parents=True)
    (folder / "0").write_text("v1\n0 to 3")
    root = (tmp_path / "my query").as_uri()
    monkeypatch.setattr(handles, "checkpoint_of_id", lambda _, name: root * (name == QUERY))
    return folder


def test_a_batch_of_other_offsets_is_refused(tmp_path: Path, offsets: Path) -> None:
    writer: Any = ChannelWriter(tmp_path / "channel")
    writer(Handed([1, 2, 3]), 0)
    writer(Handed([1, 2, 3]), 0)  # repeated after a crash
    (offsets / "0").write_text("v1\n3 to 5")  # a checkpoint restored in part
    with pytest.raises(InvalidInput, match=r"batch 0 of .* was then read from other offsets"):
        writer(Handed([4, 5]), 0)
    assert Channel(tmp_path / "channel").end_row() == 3


def test_a_kill_at_any_step_leaves_no_file_that_nobody_names(tmp_path: Path, offsets: Path) -> None:
    """Another attempt may have fewer tasks, or no rows; the one after it is of the next batch."""
    killed = 0
    for number in range(200):
        path = tmp_path / str(number)
        channel = Channel.create(path, publishing.schema_json(SCHEMA))
        channel.register("reader")
        (offsets / "1").write_text("v1\n3 to 5")
        with suppress(Stopped), watched(At(number, stop)):
            ChannelWriter(path)(Handed([1, 2, 3]), 0)  # type: ignore[arg-type]
            break
        killed += 1
        again: Any = ChannelWriter(path)
        again(Handed([[1], [], [1, 2, 3]][number % 3]), 0)
        again(Handed([4]), 1)
        entries = Channel(path).since(0)
        named = {chunk.file for entry in entries for chunk in entry.chunks}
        assert {file.name for file in (path / "data").iterdir()} == named
        assert list((path / "_staged").iterdir()) == []
        assert [entry.batch for entry in entries][-1] == 1
    assert killed > 50


def test_an_attempt_that_failed_leaves_nothing_to_the_next_one(
    tmp_path: Path, offsets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    writer: Any = ChannelWriter(tmp_path / "channel")
    with monkeypatch.context() as disk:
        disk.setattr(published, "write_new", full)
        with pytest.raises(OSError, match="No space"):
            writer(Handed([1, 2, 3]), 0)
    (tmp_path / f"channel/_staged/{QUERY}-channel-7/batch").mkdir(parents=True)
    writer(Handed([1]), 0)
    assert len(list((tmp_path / "channel/data").iterdir())) == 1
    assert list((tmp_path / "channel/_staged").iterdir()) == []


def test_what_is_published_or_anothers_stays(tmp_path: Path, offsets: Path) -> None:
    first: Any = ChannelWriter(tmp_path / "channel", "first")
    second: Any = ChannelWriter(tmp_path / "channel", "second")
    first(Handed([1, 2, 3]), 0)
    second(Handed([4, 5]), 0)
    for number in range(1, 3):
        (offsets / str(number)).write_text("v1")
        ChannelWriter(tmp_path / "channel", "first")(Handed([number]), number)  # type: ignore[arg-type]
    entries = Channel(tmp_path / "channel").since(0)
    named = {chunk.file for entry in entries for chunk in entry.chunks}
    assert {file.name for file in (tmp_path / "channel/data").iterdir()} == named
    assert len(named) == 5


def test_outside_of_a_query_it_needs_a_name(tmp_path: Path) -> None:
    named: Any = ChannelWriter(tmp_path / "channel", writer="w")
    named(Unnamed([1]), 0)
    unnamed: Any = ChannelWriter(tmp_path / "other")
    with pytest.raises(PenstockError, match="outside of foreachBatch; give it a writer"):
        unnamed(Unnamed([1]), 0)
