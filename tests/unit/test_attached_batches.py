"""What is inferred about the rows of a query that keeps no ledger."""

from typing import Any

import pytest

from penstock.spark.measure.attached_batches import (
    AttachedBatch,
    QueryRate,
    latency_of,
    read_batches,
    shares_of_rows,
)

RATES = {"q": QueryRate(10.0)}
FILES = {"description": "FileStreamSource[file:/data/in]"}
TOPIC = {"description": "KafkaV2[Subscribe[orders]]"}
OTHER = {"description": "RateStreamV2[rowsPerSecond=10]"}


def report(batch: int, second: float, took_s: float, rows: int, **source: Any) -> dict[str, Any]:
    return {
        "batchId": batch,
        "timestamp": f"2026-01-01T00:00:{second:06.3f}Z",
        "durationMs": {"addBatch": 1, "triggerExecution": int(took_s * 1000)},
        "numInputRows": rows,
        "sources": [source],
    }


def test_rows_wait_for_the_batch_before_and_are_served_in_their_own() -> None:
    first, second = read_batches(
        "q", [report(0, 0, 2.0, 10), report(1, 2.0, 3.0, 20)], None, interval_s=0.0
    )
    assert first.gathered_s == 0
    assert second.gathered_s == pytest.approx(2.0)
    seen = latency_of([second], RATES, max_latency_s=4.0)
    assert seen is not None
    assert seen.mean_s == pytest.approx(4.0)  # 3 s of service after 0 to 2 s of waiting
    assert seen.max_s == pytest.approx(5.0)
    assert seen.in_time_share == pytest.approx(0.5)
    assert seen.count == 20
    assert (seen.p95_s, seen.share_s) == (pytest.approx(4.9), pytest.approx(4.98))
    strict = latency_of([second], RATES, 4.0, share=0.9999)
    assert strict is not None
    assert strict.share_s == pytest.approx(4.9998)


def test_a_query_that_waited_for_rows_did_not_keep_them_waiting() -> None:
    found = read_batches("q", [report(0, 0, 1.0, 5), report(1, 30.0, 1.0, 5)], None, 0.0)
    assert found[1].gathered_s == pytest.approx(1.0)
    spaced = read_batches("q", [report(0, 0, 1.0, 5), report(1, 30.0, 1.0, 5)], None, 10.0)
    assert spaced[1].gathered_s == pytest.approx(11.0)


def test_only_new_batches_are_read_and_empty_triggers_are_none() -> None:
    reported = [report(0, 0, 1.0, 5), report(1, 2.0, 1.0, 5), report(2, 4.0, 1.0, 5)]
    del reported[2]["durationMs"]["addBatch"]
    last = read_batches("q", reported[:1], None, 0.0)[-1]
    assert [batch.batch_id for batch in read_batches("q", reported, last, 0.0)] == [1]


def test_offsets_by_partition_tell_the_lag() -> None:
    reported = report(
        0, 0, 1.0, 5, endOffset={"t": {"0": 5, "1": 7}}, latestOffset='{"t": {"0": 9, "1": 7}}'
    )
    assert read_batches("q", [reported], None, 0.0)[0].lag_rows == 4
    for end, latest in ((3, 5), (None, None), ("x", "y"), ({"row": 1}, {"row": 9})):
        reported["sources"] = [{"endOffset": end, "latestOffset": latest}]
        assert read_batches("q", [reported], None, 0.0)[0].lag_rows == 0


def test_what_waits_at_the_source_is_late_by_as_much() -> None:
    batch = AttachedBatch("q", 1, 0.0, 1.0, 10, lag_rows=50, gathered_s=0.0)
    seen = latency_of([batch], RATES, max_latency_s=4.0)
    assert seen is not None
    assert seen.mean_s == pytest.approx(6.0)
    assert seen.in_time_share == 0
    assert latency_of([], RATES, 4.0) is None


def newest(query: str, *sources: dict[str, Any]) -> AttachedBatch:
    told = report(0, 0, 1.0, sum(source["numInputRows"] for source in sources))
    told["sources"] = list(sources)
    (batch,) = read_batches(query, [told], None, 0.0)
    return batch


def test_a_source_that_two_queries_read_is_counted_once() -> None:
    both = {name: newest(name, {**FILES, "numInputRows": 10}) for name in ("a", "b")}
    assert shares_of_rows(both) == {"a": 0.5, "b": 0.5}
    rates = {name: QueryRate(10.0, 0.5) for name in both}
    seen = latency_of(list(both.values()), rates, max_latency_s=4.0)
    assert seen is not None
    assert seen.count == 10


def test_what_is_not_shared_is_counted_by_whoever_reads_it() -> None:
    found = {
        "a": newest("a", {**FILES, "numInputRows": 10}, {**TOPIC, "numInputRows": 30}),
        "b": newest("b", {**TOPIC, "numInputRows": 30}),
        "c": newest("c", {**OTHER, "numInputRows": 5}),
        "d": newest("d", {**OTHER, "numInputRows": 5}),  # another generator with as many
    }
    assert shares_of_rows(found) == {"a": 25 / 40, "b": 0.5, "c": 1.0, "d": 1.0}


def test_a_source_that_one_query_reads_twice_is_counted_once() -> None:
    joined = newest("a", {**FILES, "numInputRows": 10}, {**FILES, "numInputRows": 10})
    assert shares_of_rows({"a": joined}) == {"a": 0.5}


def test_a_query_is_behind_by_its_own_rate() -> None:
    slow = AttachedBatch("slow", 1, 0.0, 1.0, 10, lag_rows=50, gathered_s=0.0)
    seen = latency_of([slow], {"slow": QueryRate(10.0), "q": QueryRate(990.0)}, 4.0)
    assert seen is not None
    assert seen.mean_s == pytest.approx(6.0)
