"""A file that only tells or tidies does not end a query when it cannot be written."""

import logging
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.spark.channels.log import Channel
from penstock.spark.channels.source import ChannelReader
from penstock.spark.checkpoint import durable_files
from penstock.spark.checkpoint.advisory_files import AdvisoryFiles
from penstock.spark.checkpoint.durable_files import Step
from penstock.spark.sources.control import TaskOrders

SCHEMA = '{"type":"struct","fields":[]}'


def full(_step: Step) -> None:
    raise OSError(28, "No space left on device")


def test_what_cannot_be_written_is_said_once_until_it_can(caplog: pytest.LogCaptureFixture) -> None:
    advisory = AdvisoryFiles("source rows")
    for fails in (True, True, False, True):
        with advisory.attempt("its status"):
            if fails:
                full(Step("before", "write", Path("status")))
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(said) == 2
    assert said[0].startswith("source rows goes on without its status: ")


def test_a_reader_goes_on_where_what_it_has_read_cannot_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = Channel.create(tmp_path / "channel", SCHEMA)
    reader = ChannelReader(
        channel.directory, "r", "rows", None, 1, TaskOrders(None), False, pa.schema([])
    )
    assert reader.initialOffset()["row"] == 0
    with monkeypatch.context() as disk:
        disk.setattr(durable_files, "on_step", full)
        reader.commit({"row": 5})
    assert channel.positions() == {"r": 0}
    reader.commit({"row": 5})
    assert channel.positions() == {"r": 5}
