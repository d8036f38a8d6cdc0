"""ChannelWriter, for queries written without Penstock: an entry is bound to its offsets."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock import ChannelWriter
from penstock.errors import InvalidInput, PenstockError
from penstock.spark import handles
from penstock.spark.channels.log import Channel
from reliability.fake_batches import FakeBatch

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


def test_outside_of_a_query_it_needs_a_name(tmp_path: Path) -> None:
    named: Any = ChannelWriter(tmp_path / "channel", writer="w")
    named(Unnamed([1]), 0)
    unnamed: Any = ChannelWriter(tmp_path / "other")
    with pytest.raises(PenstockError, match="outside of foreachBatch; give it a writer"):
        unnamed(Unnamed([1]), 0)
