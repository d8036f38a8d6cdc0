"""What a run knows of its sources, kind by kind."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.model.channels import FromChannel
from penstock.model.sources import Streams
from penstock.model.topology import Source, Topology
from penstock.spark.channels.log import Channel
from penstock.spark.measure.consumption import Consumption
from penstock.spark.sources.reader import LOGS
from penstock.spark.sources.running.kinds import running_source, running_sources
from penstock.spark.sources.running.source import RunningSource
from penstock.spark.sources.status import write_status
from penstock.spark.sources.watch import SourceWatch
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant

FILES = Streams(files="in", schema="n BIGINT")


def streams(folder: Path, since_s: float = 0.0) -> RunningSource:
    return running_source(Source("lines", FILES), watch=SourceWatch(folder, since_s))


def report(folder: Path, log: int = 0, **status: Any) -> None:
    directory = folder / "lines" / LOGS / str(log)
    directory.mkdir(parents=True, exist_ok=True)
    known = {"at_s": 10.0, "seq": 0, "batch_rows": 0, "waiting_rows": 0, "finished": False}
    write_status(directory, {**known, **status})


def offset(log: int, seq: int) -> dict[str, Any]:
    return {"log": log, "seq": seq, "source": "lines", "arrived": []}


def test_a_generated_stream_goes_by_the_clock() -> None:
    source = running_source(Source("rows", Generator(constant(10.0), rows=100)), 1_000.0)
    assert source.counted(1_005.0) == (50, 1_005.0)
    assert source.waiting({"row": 20, "stream": "rows"}, 1_005.0) == 30
    assert source.waiting(None, 2_000.0) == 100
    assert not source.finished(None)
    assert not source.finished({"row": 99})
    assert source.finished({"row": 100})


def test_a_stream_without_end_ends_at_once_where_it_was_when_it_was_opened() -> None:
    source = running_source(Source("rows", Generator(constant(10.0))), 1_000.0)
    assert not source.finished({"row": 10**9})
    assert not source.finished({"row": 49}, once_since_s=1_005.0)
    assert source.finished({"row": 50}, once_since_s=1_005.0)


def test_many_streams_are_finished_when_the_last_batch_is_committed(tmp_path: Path) -> None:
    source = streams(tmp_path)
    assert not source.finished(None)
    report(tmp_path, seq=3, batch_rows=5, waiting_rows=7)
    assert source.waiting(offset(0, 2), 0.0) == 12, "the batch under way is not committed"
    assert source.waiting(offset(0, 3), 0.0) == 7
    assert source.waiting(None, 0.0) == 12
    report(tmp_path, seq=4, batch_rows=7, finished=True)
    assert not source.finished(offset(0, 3))
    assert source.finished(offset(0, 4))


@pytest.mark.parametrize("before", [None, offset(-1, 0)], ids=["no batch", "an empty batch"])
def test_a_source_without_streams_is_finished_before_any_row(
    tmp_path: Path, before: dict[str, Any] | None
) -> None:
    source = streams(tmp_path)
    report(tmp_path, finished=True)
    assert source.finished(before)
    report(tmp_path, seq=1, batch_rows=3, finished=True)
    assert not source.finished(before), "what was admitted is not committed"


def test_what_a_reader_of_an_earlier_run_said_does_not_count(tmp_path: Path) -> None:
    report(tmp_path, seq=4, finished=True, waiting_rows=3, at_s=10.0)
    source = streams(tmp_path, since_s=11.0)
    assert not source.finished(offset(0, 4))
    assert source.waiting(offset(0, 4), 0.0) == 0


def test_a_channel_counts_what_was_published(tmp_path: Path) -> None:
    Channel.create(tmp_path / "c", json.dumps({"type": "struct", "fields": []}))
    source = running_source(Source("in", FromChannel(str(tmp_path / "c"), "reader")))
    assert source.counted(5.0) == (0, 5.0)
    assert source.waiting(None, 5.0) == 0
    assert not source.finished({"row": 0, "channel": "in"})


def test_of_a_users_function_nothing_is_known() -> None:
    source = running_source(Source("rows", lambda session: session))
    assert not source.orders
    assert not source.counts_arrivals
    assert source.counted(1.0) is None
    assert source.waiting(None, 1.0) == 0
    assert not source.finished(None, once_since_s=1.0)


def progress(**rows: int) -> Any:
    """As a query's progress tells its sources."""
    ends = [json.dumps({"row": row, "stream": name}) for name, row in rows.items()]
    return SimpleNamespace(sources=[SimpleNamespace(endOffset=end) for end in ends])


def test_queries_over_different_streams_end_when_both_are_done() -> None:
    made = Topology("two", max_latency="5s")
    made.source("left", Generator(constant(10.0), rows=100))
    made.source("right", Generator(constant(10.0), rows=100))
    reads: Any = SimpleNamespace(
        queries=[
            SimpleNamespace(sharing=SimpleNamespace(copies={"left": 1})),
            SimpleNamespace(sharing=SimpleNamespace(copies={"right": 1, "totals": 1})),
        ]
    )
    queries: list[Any] = [SimpleNamespace(lastProgress=None), SimpleNamespace(lastProgress=None)]
    consumption = Consumption(running_sources(made, 0.0), reads, lambda: queries)
    assert not consumption.finished()
    assert consumption.shed_rows() is None
    queries[0].lastProgress = progress(left=100)
    assert not consumption.finished()
    assert consumption.backlog(1_000.0) == 100, "that of the query which is furthest behind"
    queries[1].lastProgress = progress(right=100)
    assert consumption.finished()
    assert consumption.backlog(1_000.0) == 0
    assert consumption.shed_rows() == 0
