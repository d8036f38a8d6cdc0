"""Executors grow and shrink on a real standalone cluster while a query runs, and lose nothing."""

import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import penstock
from penstock.control.actions import SetExecutors
from penstock.control.history.store import HistoryStore
from penstock.errors import InvalidInput
from penstock.spark import handles
from penstock.spark.act.executors import SparkExecutors, executor_settings
from penstock.spark.cluster.embedded import EmbeddedCluster
from penstock.spark.run.attached import Attached
from spark.run_to import LIMIT_S, until
from spark.sessions import KeptSession, plain_session

pytestmark = pytest.mark.spark

MAXIMUM = 3
ROWS_PER_S = 200


@pytest.fixture(scope="module")
def session(cluster: EmbeddedCluster, kept_session: KeptSession) -> Iterator[SparkSession]:
    """As any script builds it, with Python functions among its steps."""
    settings = {
        **cluster.settings,
        **executor_settings(initial=1, maximum=MAXIMUM),
        "spark.executor.memory": "512m",
        "spark.sql.streaming.numRecentProgressUpdates": "100000",
        "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    }
    with kept_session.lend("executors", lambda: plain_session(settings)) as lent:
        yield lent


def test_one_three_one_under_a_running_query(
    session: SparkSession, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    actuator = SparkExecutors(session, grow_limit_s=LIMIT_S, drain_limit_s=LIMIT_S)
    assert actuator.unavailable() == {}
    assert (actuator.executors(), actuator.slots_per_executor()) == (1, 1)
    until(lambda: len(handles.executors(session)) == 1)
    (first,) = handles.executors(session)
    assert first.gc_ms <= first.busy_ms or first.busy_ms == 0
    assert first.gc_ms >= 0

    query = (
        session.readStream.format("rate").option("rowsPerSecond", ROWS_PER_S)
        .option("numPartitions", 3).load()
        .selectExpr("value % 5 as k", "value").groupBy("k").count()
        .writeStream.outputMode("complete").format("memory").queryName("counted")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(processingTime="300 milliseconds").start()
    )  # fmt: skip

    def batches() -> int:
        return query.lastProgress["batchId"] if query.lastProgress else -1

    until(lambda: batches() > 1)
    hasty = SparkExecutors(session, grow_limit_s=0)
    late = hasty.act(SetExecutors(2))
    assert not late.done
    assert "1 of 2 executors" in late.detail
    until(lambda: hasty.executors() == 2)  # it comes all the same, and is not overlooked

    grown = actuator.act(SetExecutors(3))
    assert grown.done, grown.detail
    assert actuator.executors() == 3
    assert len(handles.executors(session)) == 3
    assert cluster.status().slots_used == 3

    oldest = handles.executors(session)[0].id
    seen = batches()
    until(lambda: batches() > seen + 1)
    shrunk = actuator.act(SetExecutors(1))
    assert shrunk.done, shrunk.detail
    assert [executor.id for executor in handles.executors(session)] == [oldest]
    assert actuator.executors() == 1

    seen = batches()
    until(lambda: batches() > seen + 2)
    assert query.exception() is None
    assert len(handles.executors(session)) == 1, "nothing may come back by itself"
    query.stop()
    _nothing_lost(session, int(query.lastProgress["sources"][0]["endOffset"]))


def _nothing_lost(session: SparkSession, admitted_s: int) -> None:
    """The rate source counts up from 0: the counts of all keys must be gap-free to a maximum.

    What was admitted is known by the source's offset, in seconds. Spark's count of input rows has a
    row twice whose task was repeated because the executor that held its result had gone.
    """
    counts = {row.k: row["count"] for row in session.table("counted").collect()}
    counted = sum(counts.values())
    assert counted >= ROWS_PER_S * admitted_s > 0  # a batch may end unreported as the query stops
    assert counts == {k: len(range(k, counted, 5)) for k in range(5)}


def test_attach_follows_a_query_it_knows_nothing_of(session: SparkSession, tmp_path: Path) -> None:
    def slow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(0.004 * len(batch))
            yield batch

    query = (
        session.readStream.format("rate").option("rowsPerSecond", 400)
        .option("numPartitions", 4).load().mapInArrow(slow, "timestamp timestamp, value long")
        .selectExpr("value % 50 AS k").groupBy("k").count()
        .writeStream.outputMode("update").format("noop").queryName("plain")
        .option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    )  # fmt: skip
    history = str(tmp_path / "history.sqlite")
    options = {"period_s": 1.0, "history": history, "cooldown_out_s": 0.5, "share": 0.999}
    controller = penstock.attach(query, max_latency="3s", executors=(1, 2), **options)
    until(lambda: any(step.outcome is not None and step.outcome.done for step in controller.steps))
    assert SparkExecutors(session).executors() == 2
    until(lambda: any(step.allocation is not None for step in controller.steps))
    assert "state-0" in key_groups_seen(controller)
    summary = controller.detach()
    assert query.isActive, "the query is not the controller's to end"
    with penstock.attach(
        session, max_latency="3s", executors=(1, 2), dry_run=True, period_s=1.0, history=history
    ) as watching:
        until(lambda: "plain/state-0" in key_groups_seen(watching))
    query.stop()
    assert summary.reconfigurations == 1
    assert summary.results > 0
    measured = [s.observation for s in controller.steps if s.observation and s.observation.latency]
    assert measured[-1].components[0].service_time_s > 0.003
    # The source gives whole seconds, so a short batch may seem half or twice as fast.
    rates = [seen.arrival_rate_per_s for seen in measured if seen.arrival_rate_per_s > 0]
    assert 200 < median(rates) < 800
    with HistoryStore(history) as store:
        assert [run.topology for run in store.runs().values()][:1] == ["plain"]
        assert store.read_allocations(1), "where its state lives is decided too, unasked"
        assert [run.share for run in store.runs().values()][:2] == [0.999, 0.99]
    latencies = [seen.latency for seen in measured if seen.latency]
    assert all(one.p95_s <= one.share_s <= one.max_s for one in latencies)
    assert any(one.p95_s < one.share_s for one in latencies)


@pytest.mark.long
def test_each_query_of_a_session_may_have_a_bound_of_its_own(
    session: SparkSession, tmp_path: Path
) -> None:
    rows = session.readStream.format("rate").option("rowsPerSecond", 100).load()
    queries = [
        rows.writeStream.format("noop").queryName(name)
        .option("checkpointLocation", str(tmp_path / name)).start()
        for name in ("orders", "audit")
    ]  # fmt: skip
    options = {"period_s": 1.0, "history": str(tmp_path / "history.sqlite"), "dry_run": True}
    with pytest.raises(InvalidInput, match="names query 'order', which does not run; running: au"):
        penstock.attach(session, {"order": "2s"}, **options)
    with penstock.attach(session, {"orders": "2s", "audit": "1m"}, (1, 2), **options) as attached:
        for name, one in attached.items():
            until(lambda one=one: any(s.observation and s.observation.latency for s in one.steps))
            seen = {c.name for s in one.steps if s.observation for c in s.observation.components}
            assert seen == {name}
    bounds = {name: summary.max_latency_s for name, summary in attached.summary().items()}
    assert bounds == {"orders": 2.0, "audit": 60.0}
    for query in queries:
        assert query.isActive
        query.stop()


def key_groups_seen(controller: Attached) -> set[str]:
    return {
        name
        for step in controller.steps
        if step.observation is not None
        for name in step.observation.key_groups
    }


def test_attach_refuses_what_it_cannot_follow() -> None:
    with pytest.raises(InvalidInput, match="give a running StreamingQuery or the session"):
        penstock.attach("my query", max_latency="3s")
    with pytest.raises(InvalidInput, match=r"such as \(1, 8\)"):
        penstock.attach("my query", max_latency="3s", executors=(0, 2))


def test_more_than_allowed_is_never_asked_for(session: SparkSession) -> None:
    actuator = SparkExecutors(session)
    before = len(handles.executors(session))
    for total in (MAXIMUM + 1, 0):
        outcome = actuator.act(SetExecutors(total))
        assert not outcome.done
        assert str(total) in outcome.detail
    assert len(handles.executors(session)) == before


def test_settings_refuse_impossible_numbers() -> None:
    for initial, maximum, slots in ((0, 2, 1), (3, 2, 1), (1, 1, 0)):
        with pytest.raises(InvalidInput, match="executors"):
            executor_settings(initial, maximum, slots)
