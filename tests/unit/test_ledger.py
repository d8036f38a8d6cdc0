"""Latency from when rows arrived and when their batch was out."""

import json
from dataclasses import replace

import pytest

from penstock.model.arrivals import Arrivals
from penstock.model.observation import StageWork
from penstock.model.topology import Source
from penstock.spark.handles.plan_nodes import METRIC
from penstock.spark.measure.batch_work import QueryWork, StageTime
from penstock.spark.measure.bounded import MOST_TAKEN, MOST_WAITING
from penstock.spark.measure.ledger import (
    Ledger,
    LedgerEntry,
    SinkBounds,
    SourceProgress,
    WrittenLedger,
    summarise,
)
from penstock.spark.measure.progress import Reports
from penstock.spark.measure.together import stages_of
from penstock.spark.sources.running.kinds import running_source
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant


def progress(start: int, end: int) -> SourceProgress:
    offsets = [json.dumps({"row": row, "stream": "s"}) for row in (start, end)]
    return SourceProgress(offsets[0], offsets[1], end - start, 0.0, 0.0)


def test_a_batch_counts_when_both_reports_are_in_whatever_their_order() -> None:
    ledger = Ledger({"s": running_source(Source("s", Generator(constant(10.0))), 100.0)})
    ledger.committed("q", 0, 112.0)
    assert ledger.take() == []
    ledger.admitted("q", 0, (progress(0, 100),))
    ledger.admitted("q", 1, (progress(100, 200),))
    ledger.committed("q", 1, 121.0)
    first, second = ledger.take()
    assert (first.batch_id, second.batch_id) == (0, 1)
    assert first.arrivals[0].first_s == pytest.approx(100.1)
    assert first.arrivals[0].last_s == pytest.approx(110.0)
    assert ledger.take() == []


def test_rows_that_were_shed_are_not_waited_for() -> None:
    ledger = Ledger({"s": running_source(Source("s", Generator(constant(10.0))), 100.0)})
    ledger.admitted("q", 0, (replace(progress(0, 100), rows=25),))
    ledger.committed("q", 0, 112.0)
    (entry,) = ledger.take()
    assert entry.rows == 25


def test_latency_counts_every_row() -> None:
    entries = [
        LedgerEntry("q", 0, (Arrivals(100, 0.0, 10.0),), done_at_s=12.0),
        LedgerEntry("q", 1, (Arrivals(300, 10.0, 20.0),), done_at_s=20.0),
    ]
    latency = summarise(entries, max_latency_s=5.0)
    assert latency is not None
    assert latency.count == 400
    assert latency.mean_s == pytest.approx((100 * 7 + 300 * 5) / 400)
    assert latency.max_s == 12.0
    # Within 5 s: of the first batch those after 7 s (30 of 100), of the second after 15 s (150).
    assert latency.in_time_share == pytest.approx(180 / 400)
    # Above 10 s lie 20 rows of the first batch, up to 12 s: 5% of all 400. Above 11.6 s, 4 do.
    assert latency.p95_s == pytest.approx(10.0)
    assert latency.share_s == pytest.approx(11.6)
    strict = summarise(entries, max_latency_s=5.0, share=0.999)
    assert strict is not None
    assert strict.share_s == pytest.approx(11.96)


def test_a_source_without_arrival_times_is_spread_since_the_last_batch() -> None:
    ledger = Ledger({})
    ledger.admitted("q", 3, (SourceProgress(None, '"7"', 50, 40.0, 44.0),))
    ledger.committed("q", 3, 45.0)
    latency = summarise(ledger.take(), max_latency_s=3.0)
    assert latency is not None
    assert latency.mean_s == pytest.approx(3.0)
    assert latency.in_time_share == pytest.approx(0.5)


def test_nothing_arrived_is_no_latency() -> None:
    assert summarise([], 5.0) is None
    assert summarise([LedgerEntry("q", 0, (), 1.0)], 5.0) is None


def test_rows_of_one_moment_are_all_in_time_or_all_late() -> None:
    assert Arrivals(7, 5.0, 5.0).later_than(4.0) == 7
    assert Arrivals(7, 5.0, 5.0).later_than(5.0) == 0


def test_rows_that_two_queries_read_count_once() -> None:
    source = running_source(Source("s", Generator(constant(10.0))), 100.0)
    ledger = Ledger({"s": source}, {"p": {"s"}, "q": {"s"}})
    for query, done_s in (("p", 112.0), ("q", 120.0)):
        ledger.admitted(query, 0, (progress(0, 100),))
        ledger.committed(query, 0, done_s)
    told = summarise(ledger.take(), max_latency_s=5.0)
    assert told is not None
    assert told.count == 100
    assert told.max_s == pytest.approx(19.9)  # the slower of the two shows


def test_rows_that_one_query_reads_twice_count_once() -> None:
    source = running_source(Source("s", Generator(constant(10.0))), 100.0)
    ledger = Ledger({"s": source}, {"q": {"s"}})
    ledger.admitted("q", 0, (progress(0, 100), progress(0, 100)))
    ledger.committed("q", 0, 112.0)
    assert sum(entry.rows for entry in ledger.take()) == pytest.approx(100)


def test_a_source_of_others_that_two_queries_read_counts_once() -> None:
    own = running_source(Source("s", Generator(constant(10.0))), 100.0)
    ledger = Ledger({"s": own}, {"p": {"s", "theirs"}, "q": {"theirs"}})
    theirs = SourceProgress(None, '"7"', 50, 40.0, 44.0)
    ledger.admitted("p", 0, (progress(0, 100), theirs))
    ledger.admitted("q", 0, (theirs,))
    ledger.committed("p", 0, 112.0)
    ledger.committed("q", 0, 112.0)
    assert sum(entry.rows for entry in ledger.take()) == pytest.approx(150)


def test_sources_of_others_count_by_the_rows_of_those_that_two_queries_read() -> None:
    """Which is which is not known, but how many rows each of them has."""
    ledger = Ledger({}, {"p": {"person", "bid"}, "q": {"bid"}})
    rows = {"person": 100, "bid": 900}
    theirs = [SourceProgress(None, '"7"', count, 40.0, 44.0) for count in rows.values()]
    ledger.admitted("p", 0, tuple(theirs), rows)
    ledger.admitted("q", 0, (theirs[1],), {"bid": 900})
    for query in ("p", "q"):
        ledger.committed(query, 0, 50.0)
    assert sum(entry.rows for entry in ledger.take()) == pytest.approx(1000)


def test_rows_behind_two_writers_count_once() -> None:
    ledger = WrittenLedger({}, {"p": {"s"}, "q": {"s"}, "r": {"t"}})
    for query in ("p", "q", "r"):
        ledger.record(LedgerEntry(query, 0, (Arrivals(100, 0.0, 10.0),), done_at_s=12.0))
    assert sum(entry.rows for entry in ledger.take()) == pytest.approx(200)


def test_what_nobody_takes_and_halves_that_stay_alone_are_bounded() -> None:
    ledger = Ledger({})
    for batch in range(3 * MOST_TAKEN):
        ledger.committed("q", 2 * batch, 1.0)  # whose offsets are never told
        ledger.admitted("q", 2 * batch + 1, (progress(0, 1),))  # never committed
        ledger.record(LedgerEntry("loud", batch, (), 1.0))
    ledger.record(LedgerEntry("quiet", 7, (), 1.0))
    assert max(len(ledger._done), len(ledger._arrived)) <= MOST_WAITING
    taken = ledger.take()
    assert [entry.batch_id for entry in taken if entry.query == "quiet"] == [7]
    loud = [entry.batch_id for entry in taken if entry.query == "loud"]
    assert loud == list(range(2 * MOST_TAKEN, 3 * MOST_TAKEN)), "the newest are kept"


def test_reports_that_nobody_takes_are_bounded() -> None:
    reports = Reports(Ledger({}))
    reports.follow("id", "q", 0.0)
    for batch in range(MOST_TAKEN + 50):
        told = {
            "id": "id", "batchId": batch, "timestamp": "2026-01-01T00:00:00Z", "durationMs": {},
            "sources": [],
        }  # fmt: skip
        reports.receive(json.dumps(told))
    assert len(reports.take()) == MOST_TAKEN
    assert reports.take() == []


@pytest.mark.parametrize(
    ("metrics", "rows"),
    [
        ({"bid>q1": 46, "bid>q7": 46, "person": 1}, 47),
        ({"bid>q1": 46, "bid>q7": 46}, 93),  # not all are known: as Spark counts
        ({}, 93),
    ],
)
def test_rows_that_a_batch_reads_twice_count_once(metrics: dict[str, int], rows: int) -> None:
    ledger = Ledger({}, {"q": {"bid", "person"}})
    reports = Reports(ledger, {"q": {"bid", "person"}})
    reports.follow("id", "q", 0.0)
    told = {
        "id": "id", "batchId": 0, "timestamp": "2026-01-01T00:00:00Z", "durationMs": {},
        "sources": [
            {"startOffset": None, "endOffset": {"logOffset": 0}, "numInputRows": count}
            for count in (92, 1)
        ],
        "observedMetrics": {METRIC + name: {"rows": count} for name, count in metrics.items()},
    }  # fmt: skip
    reports.receive(json.dumps(told))
    (report,) = reports.take()
    assert (report.rows, report.foreign_rows) == (rows, rows)
    ledger.committed("q", 0, 1.0)
    assert sum(entry.rows for entry in ledger.take()) == rows


def test_the_times_of_state_belong_to_the_stage_that_holds_it() -> None:
    reports = Reports(Ledger({}))
    reports.follow("id", "q", 0.0)
    states = [
        {"allUpdatesTimeMs": update, "allRemovalsTimeMs": 20, "commitTimeMs": 30}
        for update in (100, 200)
    ]
    sources = [{"startOffset": None, "endOffset": {"logOffset": 0}, "numInputRows": 7}]
    told = {
        "id": "id", "batchId": 0, "timestamp": "2026-01-01T00:00:00Z", "durationMs": {},
        "sources": sources, "stateOperators": states,
    }  # fmt: skip
    reports.receive(json.dumps(told))
    (report,) = reports.take()
    # A plan is read from its end, so that the state met first is that of the last stage.
    times = (
        StageTime("rows", 2, 0, 0.5, 0.4, ()),
        StageTime("first", 8, 7, 0.9, 0.8, (1,)),
        StageTime("last", 8, 5, 0.6, 0.5, (0,)),
    )
    work = QueryWork({}, {}, {}, frozenset({0}), stages=times)
    assert list(stages_of(report, work)) == [
        StageWork("rows", 2, 0, 0.5, 0.4),
        StageWork("first", 8, 7, 0.9, 0.8, 0.25),
        StageWork("last", 8, 5, 0.6, 0.5, 0.15),
    ]
    other = QueryWork({}, {}, {}, frozenset({0}), stages=(StageTime("x", 8, 5, 0.6, 0.5, (2,)),))
    assert list(stages_of(report, other)) == [], "a plan of another form tells nothing"


def test_each_sink_is_measured_by_its_own_bound_and_the_whole_by_that_of_its_query() -> None:
    entries = [
        LedgerEntry("fast", 0, (Arrivals(100, 0.0, 10.0),), done_at_s=12.0),
        LedgerEntry("slow", 0, (Arrivals(100, 0.0, 10.0),), done_at_s=20.0),
    ]
    bounds = SinkBounds({"fast": {"alerts": 7.0, "page": 12.0}, "slow": {"archive": 20.0}})
    sinks = bounds.observed(entries, share=0.9)
    seen = {one.name: one.latency.in_time_share for one in sinks}
    assert seen == {"alerts": pytest.approx(0.5), "page": 1.0, "archive": 1.0}
    kept_s = {one.name: one.latency.share_s for one in sinks}
    assert kept_s == {name: pytest.approx(11.0) for name in ("alerts", "page")} | {
        "archive": pytest.approx(19.0)
    }
    whole = summarise(entries, 7.0, bounds, share=0.9)
    assert whole is not None
    assert whole.in_time_share == pytest.approx(0.75)
    assert whole.share_s == pytest.approx(18.0)  # 180 of 200: the last 20 of the slow ones did not
    assert SinkBounds({"fast": {"alerts": 7.0}}).observed(entries) == ()
