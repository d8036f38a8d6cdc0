"""Key groups move between executors of a real cluster while plain queries run, and nothing is lost.

The queries are not ours: a user's own, attached. What they write is compared with the rows that the
generator made, computed without Spark.
"""

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from penstock.control.actions import Move, MoveKeyGroups, SetExecutors
from penstock.errors import InvalidInput
from penstock.model.plan_document import Group
from penstock.model.sinks import Memory
from penstock.model.topology import Topology
from penstock.spark import handles
from penstock.spark.act.actuator import SparkActuator
from penstock.spark.act.placement import Placement
from penstock.spark.cluster.embedded import EmbeddedCluster
from penstock.spark.compile.fused import PlanChoice
from penstock.spark.run.apart import RunningApart
from penstock.spark.run.controlled import placements_of
from penstock.spark.run.together import RunningTopology
from spark.killed_program import processes_below
from spark.placed import STREAM, all_to, kill_executor, rows
from spark.run_to import LIMIT_S, until
from spark.sessions import KeptSession, cluster_session

pytestmark = pytest.mark.spark

RUNNER = b"pyspark.sql.streaming.python_streaming_source_runner"
GROUPS, EXECUTORS = 3, 3


@pytest.fixture(scope="module")
def session(cluster: EmbeddedCluster, kept_session: KeptSession) -> Iterator[SparkSession]:
    with cluster_session(kept_session, cluster, "placement", GROUPS, EXECUTORS) as lent:
        yield lent


def start(frame: DataFrame, place: Path, mode: str, sink: Any = None) -> StreamingQuery:
    writer = frame.writeStream.outputMode(mode).option("checkpointLocation", str(place))
    return (writer.foreachBatch(sink) if sink else writer.format("noop")).start()


def executors_of(placement: Placement) -> dict[tuple[str, int], str]:
    return {
        (name, group): str(node)
        for name, groups in placement.observe().items()
        for group, node in enumerate(groups.node)
    }


@pytest.mark.long
def test_an_attached_query_is_placed_loses_an_executor_and_is_drained(
    session: SparkSession, tmp_path: Path
) -> None:
    epoch_s = float(int(time.time()) - 2)
    counted: list[tuple[float, int]] = []

    def collect(batch: DataFrame, _: int) -> None:
        counted.extend((row.since.timestamp(), row.n) for row in batch.collect())

    by_key = (
        rows(session, epoch_s).withWatermark("at", "1 second")
        .groupBy("key", F.window("at", "1 second")).agg(F.count("*").alias("n"))
    )  # fmt: skip
    frame = by_key.groupBy(F.window("window", "1 second")).agg(F.sum("n").alias("n"))
    query = start(frame.select("window.start", "n").toDF("since", "n"), tmp_path, "append", collect)
    placement = Placement(session, query)
    placement.watch()
    try:
        until(lambda: len(placement.components) == 2)
        until(lambda: len(handles.active_executor_ids(session)) == EXECUTORS)
        nodes = sorted(handles.active_executor_ids(session))

        # What is seen: where each key group is, how large, and who sends how much to whom.
        until(lambda: all(np.all(g.state_bytes > 0) for g in placement.observe().values()))
        until(lambda: [t for t in placement.traffic() if t.size_bytes.sum() > 0])
        (traffic,) = placement.traffic()
        first = traffic.source
        assert {first, traffic.target} == set(placement.components)

        # Everything on one executor, then spread: each plan is carried out exactly.
        for plan in (nodes[:1], nodes):
            wanted = all_to(placement, plan)
            moved = placement.move(wanted, LIMIT_S)
            assert moved.waiting == ()
            assert executors_of(placement) == {(m.component, m.key_group): m.node for m in wanted}

        # A killed executor's key groups find a new home, without anybody asking.
        kill_executor(session, nodes[1])
        until(lambda: nodes[1] not in handles.active_executor_ids(session))
        until(lambda: nodes[1] not in executors_of(placement).values())

        # An executor that leaves is emptied first; no task is left on it, and none failed.
        until(lambda: len(handles.active_executor_ids(session)) == EXECUTORS)
        actuator = SparkActuator(session, [placement])
        leaving = sorted(handles.active_executor_ids(session))[0]
        outcome = actuator.act(SetExecutors(EXECUTORS - 1, (leaving,)))
        assert outcome.done, outcome.detail
        assert leaving not in executors_of(placement).values()
        assert leaving not in handles.active_executor_ids(session)

        bad = actuator.act(MoveKeyGroups((Move(first, 0, leaving),)))
        assert not bad.done
        assert leaving in bad.detail
        with pytest.raises(InvalidInput, match="known components"):
            placement.move([Move("nothing", 0, nodes[2])])
        enough = len(counted) + 3
        until(lambda: len(counted) >= enough)
        assert query.isActive
    finally:
        placement.close()
        query.stop()
    last_s = max(since for since, _ in counted) + 1
    made = STREAM.batch(0, STREAM.available(last_s - epoch_s + 1), epoch_s)
    at_s = made.column("at").cast("int64").to_numpy() // 1_000_000
    expected = Counter(at_s[at_s < last_s].tolist())
    assert sorted(counted) == sorted((float(second), n) for second, n in expected.items())


def test_key_groups_of_a_query_that_was_started_again_are_placed(
    session: SparkSession, tmp_path: Path
) -> None:
    made = Topology("revived", max_latency="60s")
    made.source("rows", STREAM)
    made.add("counts", "SELECT key, count(*) AS n FROM rows GROUP BY key", "rows")
    made.sink("out", "counts", Memory(), mode="update")
    with RunningTopology(made, session, tmp_path / "c") as running:
        placements = placements_of(running)
        until(lambda: placements[0].components)
        dead, followed = running.queries[0], placements[0]
        os.kill(next(processes_below(os.getpid(), RUNNER)), signal.SIGKILL)
        until(lambda: placements[0] is not followed)
        assert running.queries[0].runId != dead.runId
        until(lambda: placements[0].observe())
        until(lambda: len(handles.active_executor_ids(session)) == EXECUTORS)
        nodes = sorted(handles.active_executor_ids(session))
        for shift in range(2):
            wanted = all_to(placements[0], nodes[shift:] + nodes[:shift])
            assert placements[0].move(wanted, LIMIT_S).waiting == ()
            found = executors_of(placements[0])
            assert found == {(m.component, m.key_group): m.node for m in wanted}
        emptied = placements[0].evacuate(nodes[:1], LIMIT_S)
        assert emptied.waiting == ()
        assert nodes[0] not in executors_of(placements[0]).values()
        for placement in placements:
            placement.close()


@pytest.mark.long
def test_key_groups_of_a_fused_component_apart_are_placed_by_several_in_a_task(
    session: SparkSession, tmp_path: Path
) -> None:
    made = Topology("placed", max_latency="60s")
    made.source("rows", STREAM)
    made.add("cut", "SELECT key, key % 4 AS bucket, at FROM rows", "rows")

    @made.operator("cut")
    def by_key(cut: DataFrame) -> DataFrame:
        timed = cut.withWatermark("at", "1 second")
        return timed.groupBy("key", "bucket", F.window("at", "1 second")).agg(
            F.count("*").alias("n")
        )

    made.add(
        "by_bucket",
        """SELECT bucket, window(window, '1 second').start AS since, sum(n) AS n
           FROM by_key GROUP BY bucket, window(window, '1 second')""",
        "by_key",
    )
    made.sink("out", "by_bucket", Memory())
    fused = PlanChoice((Group(("by_key", "by_bucket"), ("bucket",)),))
    running = RunningApart(made, session, tmp_path / "c", choice=fused, processors={"by_key": 2})
    with running:
        placements = placements_of(running)
        running.place_key_groups(placements)
        place = [query.plan.name for query in running.built.queries].index("placed-by_key")
        until(lambda: placements[place].components == ("by_key",))
        placement = placements[place]
        nodes = sorted(handles.active_executor_ids(session))
        for plan in (nodes[:1], nodes[1:], nodes):
            wanted = [Move("by_key", group, plan[group % len(plan)]) for group in range(GROUPS)]
            assert placement.move(wanted, LIMIT_S).waiting == ()
            assert executors_of(placement) == {(m.component, m.key_group): m.node for m in wanted}
        enough = len(running.rows("out")) + 8
        until(lambda: len(running.rows("out")) >= enough)
        for one in placements:
            one.close()
        epoch_s = running.epoch_s
    found = [(row.bucket, row.since.timestamp(), row.n) for row in running.rows("out")]
    last_s = max(since for _, since, _ in found) + 1
    batch = STREAM.batch(0, STREAM.available(last_s - epoch_s + 1), epoch_s)
    at_s = batch.column("at").cast("int64").to_numpy() // 1_000_000
    buckets = batch.column("key").to_numpy() % 4
    kept = at_s < last_s
    expected = Counter(zip(buckets[kept].tolist(), at_s[kept].tolist(), strict=True))
    assert sorted(found) == sorted((bucket, float(s), n) for (bucket, s), n in expected.items())


def counting_function() -> Any:
    """Made here, so that it travels to workers by value: they cannot import this module."""

    def count(key: Any, frames: Any, state: Any) -> Iterator[pd.DataFrame]:
        total = (state.get[0] if state.exists else 0) + sum(len(frame) for frame in frames)
        state.update((total,))
        yield pd.DataFrame({"key": [key[0]], "n": [total]})

    return count


def counting_processor() -> StatefulProcessor:
    """Likewise, for transformWithState."""

    class Counting(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self._count = handle.getValueState("count", "n long")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:
            before = self._count.get()[0] if self._count.exists() else 0
            total = before + sum(len(frame) for frame in rows)
            self._count.update((total,))
            yield pd.DataFrame({"key": [key[0]], "n": [total]})

        def close(self) -> None:
            """Nothing to let go of."""

    return Counting()


@pytest.mark.long
@pytest.mark.parametrize(
    "kind", ["deduplication", "join", "grouped state", "transformWithState", "sessions"]
)
def test_every_kind_of_state_moves(session: SparkSession, tmp_path: Path, kind: str) -> None:
    source = rows(session, time.time() - 2).withWatermark("at", "2 seconds")
    mode = "append"
    if kind == "deduplication":
        frame = source.dropDuplicatesWithinWatermark(["key"])
    elif kind == "join":
        other = rows(session, time.time() - 2).withWatermark("at", "2 seconds").toDF(
            "row2", "key2", "value2", "at2"
        )  # fmt: skip
        near = "key = key2 AND at BETWEEN at2 - INTERVAL 1 SECOND AND at2"
        frame = source.join(other, F.expr(near))
    elif kind == "sessions":
        frame = source.groupBy("key", F.session_window("at", "1 second")).count()
    elif kind == "grouped state":
        mode = "update"
        frame = source.groupBy("key").applyInPandasWithState(
            counting_function(), "key long, n long", "n long", mode, "NoTimeout"
        )
    else:
        pytest.importorskip("google.protobuf", reason="PySpark needs it for transformWithState")
        mode = "update"
        frame = source.groupBy("key").transformWithStateInPandas(
            counting_processor(), "key long, n long", mode, "None"
        )
    query = start(frame, tmp_path, mode)
    placement = Placement(session, query)
    placement.watch()
    try:
        until(lambda: placement.observe() or not query.isActive)
        assert query.exception() is None
        nodes = sorted(handles.active_executor_ids(session))
        for shift in range(2):
            wanted = all_to(placement, nodes[shift:] + nodes[:shift])
            moved = placement.move(wanted, LIMIT_S)
            assert moved.waiting == ()
            assert executors_of(placement) == {(m.component, m.key_group): m.node for m in wanted}
    finally:
        placement.close()
        query.stop()
    assert query.exception() is None
