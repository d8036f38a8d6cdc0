"""Executors grow and shrink on a real standalone cluster while a query runs, and lose nothing."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.control.actions import SetExecutors
from penstock.errors import InvalidInput
from penstock.spark import handles
from penstock.spark.embedded import EmbeddedCluster
from penstock.spark.executors import SparkExecutors, executor_settings

pytestmark = pytest.mark.spark

MAXIMUM = 3


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(slots=6) as running:
        yield running


@pytest.fixture(scope="module")
def session(
    cluster: EmbeddedCluster, new_session: Callable[[dict[str, str]], SparkSession]
) -> SparkSession:
    return new_session(
        {
            **cluster.settings,
            **executor_settings(initial=1, maximum=MAXIMUM),
            "spark.executor.memory": "512m",
            "spark.sql.streaming.numRecentProgressUpdates": "100000",
            "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        }
    )


def until(condition: Callable[[], object], limit_s: float = 90) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come in time"
        time.sleep(0.05)


def test_one_three_one_under_a_running_query(
    session: SparkSession, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    actuator = SparkExecutors(session)
    assert actuator.unavailable() == {}
    assert (actuator.executors(), actuator.slots_per_executor()) == (1, 1)
    until(lambda: len(handles.executors(session)) == 1)

    query = (
        session.readStream.format("rate").option("rowsPerSecond", 200)
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
    _nothing_lost(session, query.recentProgress)


def _nothing_lost(session: SparkSession, progress: list[dict[str, int]]) -> None:
    """The rate source counts up from 0: the counts of all keys must be gap-free to a maximum."""
    counts = {row.k: row["count"] for row in session.table("counted").collect()}
    admitted = sum(entry["numInputRows"] for entry in progress)
    assert sum(counts.values()) == admitted > 0
    assert counts == {k: len(range(k, admitted, 5)) for k in range(5)}


def test_more_than_allowed_is_never_asked_for(session: SparkSession) -> None:
    actuator = SparkExecutors(session)
    for total in (MAXIMUM + 1, 0):
        outcome = actuator.act(SetExecutors(total))
        assert not outcome.done
        assert str(total) in outcome.detail
    assert len(handles.executors(session)) == 1


def test_settings_refuse_impossible_numbers() -> None:
    for initial, maximum, slots in ((0, 2, 1), (3, 2, 1), (1, 1, 0)):
        with pytest.raises(InvalidInput, match="executors"):
            executor_settings(initial, maximum, slots)
