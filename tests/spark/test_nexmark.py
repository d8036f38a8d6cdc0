"""Nexmark's queries as one topology: the rows that plain Python finds in all events."""

import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from benchmarks.nexmark.events import EPOCH_US, FIRST_ID, ROUND, SHARES, Events
from benchmarks.nexmark.programs import results, topology
from benchmarks.nexmark.queries import BY_NAME, MISSING
from benchmarks.nexmark.source import AuctionSite, site
from penstock import Files, Topology
from penstock.errors import InvalidInput
from penstock.sources import Ranges
from penstock.spark.run.together import Pace, RunningTopology
from penstock.workloads.profiles import steps
from spark.nexmark_expected import EXPECTED, closed, rows_of
from spark.run_to import LIMIT_S

EVENTS, FILES, PER_S = 3_000, 2, 75.0
RUSH = steps([("10s", 50), ("5s", 0), ("10s", 200)])


def test_events_are_a_function_of_their_numbers() -> None:
    made, again = Events(seed=3), Events(seed=3)
    whole = made.tables(0, 10 * ROUND)
    assert {kind: len(table) for kind, table in whole.items()} == {
        "person": 10, "auction": 30, "bid": 460,
    }  # fmt: skip
    half = again.tables(5 * ROUND, 5 * ROUND)
    assert half["bid"].equals(whole["bid"].slice(230))
    assert not Events(seed=4).tables(0, 10 * ROUND)["bid"].equals(whole["bid"])


def test_bids_go_to_auctions_that_are_there_and_to_hot_ones_most() -> None:
    events = Events().tables(0, 1_000 * ROUND)
    auctions = events["auction"]["id"].to_pylist()
    assert auctions == list(range(FIRST_ID, FIRST_ID + 3_000))
    assert set(events["bid"]["auction"].to_pylist()) <= set(auctions)
    counted = Counter(events["bid"]["auction"].to_pylist())
    hot = sum(count for auction, count in counted.items() if (auction - FIRST_ID) % 100 == 0)
    assert 0.48 < hot / 46_000 < 0.54


def test_times_follow_the_rate() -> None:
    at = Events(rate=RUSH).tables(0, 2_500)["bid"]["at"].cast("int64").to_numpy() - EPOCH_US
    second = Counter((at // 1_000_000).tolist())
    assert [second[s] for s in (5, 12)] == [46, 0]
    assert 180 < second[20] < 190
    with pytest.raises(InvalidInput, match="rate ends at 0"):
        Events(rate=steps([("1s", 50), ("1s", 0)])).tables(0, 51)


@pytest.mark.parametrize("kind", SHARES)
def test_streams_have_the_events_that_files_have(kind: str) -> None:
    table = Events(rate=RUSH, seed=5).tables(0, EVENTS)[kind]
    backend = AuctionSite.from_options(site(kind, RUSH, events=EVENTS, seed=5, streams=3).options)
    names = [stream.name for stream in backend.discover()]
    latest = backend.latest(names, start := backend.first(names), whole=True)
    assert latest.ended.all()
    assert latest.waiting_rows.sum() == len(table)
    found = [[] for _ in names]
    while not start.same(latest.end).all():
        upto = backend.advance(names, start, latest.end, np.array([7, 100, 10_000]))
        for chunk in backend.read(Ranges(names, start, upto.end, upto.rows), table.schema):
            found[chunk.ranges[0]] += chunk.rows.to_pylist()
        assert (upto.rows > 0)[~start.same(upto.end)].all()
        start = upto.end
    # The i-th event is in stream i modulo their number, in order.
    assert found == [table.to_pylist()[place::3] for place in range(3)]


def test_events_of_a_stream_come_in_their_time() -> None:
    begun_s = time.time() - 12.0  # 500 have come, and none comes for 3 s
    backend = AuctionSite.from_options(site("bid", RUSH, streams=2, begin_s=begun_s).options)
    names = [stream.name for stream in backend.discover()]
    latest = backend.latest(names, backend.first(names))
    assert latest.waiting_rows.tolist() == [230, 230]
    assert not latest.ended.any()
    assert latest.last_s[1] == pytest.approx(begun_s + 10)


def test_every_query_is_there_or_said_why_not() -> None:
    assert {f"q{number}" for number in range(23)} == set(BY_NAME) | set(MISSING)


@pytest.mark.spark
def test_results_are_those_of_all_events(session: SparkSession, tmp_path: Path) -> None:
    events = Events(rate=PER_S)
    events.write(tmp_path / "events", EVENTS, FILES)
    made = topology(BY_NAME, tmp_path / "events", tmp_path / "out")
    with RunningTopology(made, session, tmp_path / "checkpoint", Pace(once=True)) as running:
        assert running.wait(LIMIT_S)
        running.settle(LIMIT_S)
        # However many queries read an event, it is one.
        assert sum(entry.rows for entry in running.ledger.take()) == pytest.approx(EVENTS)
    compare(tmp_path / "out", BY_NAME, events, EVENTS)


@pytest.mark.spark
def test_a_query_over_streams_gives_what_it_gives_over_files(
    session: SparkSession, tmp_path: Path
) -> None:
    made = Topology("streamed", max_latency="60s")
    made.source("bid", site("bid", RUSH, events=EVENTS))
    made.add("q2", BY_NAME["q2"].stream, "bid")
    made.sink("q2_out", "q2", Files(str(tmp_path / "q2")))
    with RunningTopology(made, session, tmp_path / "checkpoint", Pace(once=True)) as running:
        assert running.wait(LIMIT_S)
    compare(tmp_path, ["q2"], Events(rate=RUSH), EVENTS)


def compare(out: Path, names: Iterable[str], events: Events, count: int) -> None:
    """The results of these queries, run as one topology, beside those of so many events."""
    tables = {kind: rows_of(table) for kind, table in events.tables(0, count).items()}
    queries = [BY_NAME[name] for name in names]
    for query in queries:
        # Results of one mode are one streaming query, which has one watermark for all it reads.
        beside = {kind for other in queries if other.mode == query.mode for kind in other.reads}
        until = closed(tables[kind] for kind in beside)
        found = Counter(results(query, out))
        expected = Counter[Any](EXPECTED[query.name](*map(tables.get, query.reads), until))
        assert found == expected, query.name
        assert found, query.name
