"""Routed sources in a running topology: rows obey, state does not care, costs are learnt."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession

from experiments.routing.on_spark.costly_values import SCHEMA, CostlyValues
from penstock.errors import InvalidTopology
from penstock.model.channels import FromChannel
from penstock.model.route import Route
from penstock.model.sinks import Memory, ToChannel
from penstock.model.sources import Streams
from penstock.model.topology import Topology
from penstock.routing.hashing import key_hashes
from penstock.spark.compile.builder import build
from penstock.spark.compile.inspection import Reading
from penstock.spark.measure.together import SparkMeasurer
from penstock.spark.routes.by_cost import sketch_of
from penstock.spark.routes.costed import costed
from penstock.spark.routes.exchange import RouteExchange
from penstock.spark.run.together import Pace, RunningTopology
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant
from spark.run_to import LIMIT_S, settled

pytestmark = pytest.mark.spark

SCHEMA_WITH_TASK = f"{SCHEMA}, task INT"
RELAXED = "spark.sql.streaming.statefulOperator.useStrictDistribution"


def stream(rows: int, batches: int, **more: Any) -> Generator:
    return Generator(constant(1e6), rows=rows, max_rows=rows // batches, lanes=2, **more)


def with_task() -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Adds the number of the task; made here, so that it goes to workers by value."""

    def add(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        for batch in batches:
            task = pa.array([context.partitionId()] * batch.num_rows, pa.int32())
            yield batch.append_column("task", task)

    return add


def test_keys_in_parts_meet_again_in_state(session: SparkSession, tmp_path: Path) -> None:
    """Also where Spark would take any partitioning that it believes in."""
    rows = stream(6_000, 3, keys=20, skew=1.5)
    made = Topology("split", max_latency="10s")
    made.source("rows", rows, route=Route("frequency-aware", key="key", partitions=3, period=0.001))

    @made.operator("rows")
    def worked(rows: Any) -> Any:
        return rows.mapInArrow(with_task(), SCHEMA_WITH_TASK)

    made.add("counts", "SELECT key, count(*) AS n FROM rows GROUP BY key", upstream="rows")
    made.sink("raw", "worked", Memory(), mode="update")
    made.sink("all", "counts", Memory(), mode="update")
    session.conf.set(RELAXED, "false")
    try:
        with RunningTopology(made, session, tmp_path / "checkpoint", Pace(once=True)) as running:
            measurer = SparkMeasurer(running)
            assert running.wait(120)
            settled(running)
            found, raw = running.rows("all"), running.rows("raw")
            observed = measurer.observe()
    finally:
        session.conf.unset(RELAXED)
    expected = Counter(rows.batch(0, 6_000, 0.0).column("key").to_pylist())
    counts: dict[int, int] = {}
    for row in found:  # updates: the last one of a key is its count
        counts[row.key] = max(counts.get(row.key, 0), row.n)
    assert counts == expected
    assert sorted(row.row for row in raw) == list(range(6_000))
    tasks_of_hottest = {row.task for row in raw if row.key == 0 and row.row >= 2_000}
    assert len(tasks_of_hottest) == 3
    assert observed is not None
    (route,) = observed.routes
    assert route.source == "rows"
    assert len(route.load_s) == 3
    assert route.rows.sum() % 2_000 == 0  # of one batch, read by both consumers
    assert route.table.startswith("00000002-")


def test_costs_are_learnt_and_tasks_in_use_change(session: SparkSession, tmp_path: Path) -> None:
    work = CostlyValues(16, 0.001, 0.040)
    made = Topology("dealt", max_latency="10s")
    made.source(
        "rows", stream(200, 4, keys=16), route=Route("osg", key="key", partitions=4, period=0.001)
    )

    @made.operator("rows")
    def looked_up(rows: Any) -> Any:
        return rows.mapInArrow(costed(work, by="key", source="rows"), SCHEMA)

    @made.operator("looked_up")
    def worked(looked_up: Any) -> Any:
        return looked_up.mapInArrow(with_task(), SCHEMA_WITH_TASK)

    made.sink("raw", "worked", Memory())
    folder = tmp_path / "checkpoint/penstock/routes/rows"
    with RunningTopology(made, session, tmp_path / "checkpoint", Pace(once=True)) as running:
        running.after_batch.append(
            lambda _, batch: running.use_tasks("rows", 3) if batch == 1 else None
        )
        assert running.wait(120)
        raw = running.rows("raw")
    assert sorted(row.row for row in raw) == list(range(200))
    tables = sorted((folder / "tables").glob("*.json"))
    document = json.loads(tables[-1].read_text())
    assert document["tasks"] == 3
    costs_s = sketch_of(document["content"]).estimate_s(key_hashes(np.arange(16)))
    # By 21 ms as it waits; a busy machine makes all of them longer.
    assert costs_s[8:].mean() > costs_s[:8].mean() + 0.010
    assert {row.task for row in raw if row.row >= 150} == {0, 1, 2}


def test_lanes_of_many_streams_write_routes(session: SparkSession, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        lines = [json.dumps({"key": key % 5, "row": key}) for key in range(200)]
        (tmp_path / f"{name}.json").write_text("\n".join(lines) + "\n", encoding="utf-8")
    made = Topology("files", max_latency="10s")
    streams = Streams(
        files=str(tmp_path),
        pattern="*.json",
        schema="key BIGINT, row BIGINT",
        stream_column="stream",
    )
    made.source("rows", streams, route=Route("two-choices", key="key", partitions=3))

    @made.operator("rows")
    def worked(rows: Any) -> Any:
        return rows.mapInArrow(with_task(), "key BIGINT, row BIGINT, stream STRING, task INT")

    made.sink("raw", "worked", Memory())
    with RunningTopology(made, session, tmp_path / "checkpoint", Pace(once=True)) as running:
        assert running.wait(120)
        raw = running.rows("raw")
    found = sorted((row.stream, row.row) for row in raw)
    assert found == [(f"{name}.json", row) for name in "abc" for row in range(200)]
    tasks = Counter(row.task for row in raw)
    assert len(tasks) == 3
    assert max(tasks.values()) <= 1.1 * 600 / 3


def test_readers_of_a_channel_write_routes(session: SparkSession, tmp_path: Path) -> None:
    where = str(tmp_path / "channel")
    writer = Topology("writer", max_latency="10s")
    writer.source("rows", stream(600, 2, keys=5))
    writer.sink("out", "rows", ToChannel(where))
    with RunningTopology(writer, session, tmp_path / "w", Pace(once=True)) as running:
        assert running.wait(120)
    made = Topology("reader", max_latency="10s")
    made.source(
        "rows", FromChannel(where, "r", max_rows=300),
        route=Route("two-choices", key="key", partitions=3),
    )  # fmt: skip

    @made.operator("rows")
    def worked(rows: Any) -> Any:
        narrow = rows.select("key", "row")
        return narrow.mapInArrow(with_task(), "key BIGINT, row BIGINT, task INT")

    made.sink("raw", "worked", Memory())
    with RunningTopology(made, session, tmp_path / "r", Pace(once=True)) as running:
        assert running.wait(120)
        raw = running.rows("raw")
    assert sorted(row.row for row in raw) == list(range(600))
    tasks = Counter(row.task for row in raw)
    assert len(tasks) == 3
    assert max(tasks.values()) <= 1.1 * 600 / 3


def test_what_is_refused(session: SparkSession) -> None:
    def refused(reader: Any, route: Route) -> str:
        made = Topology("wrong", max_latency="5s")
        made.source("rows", reader, route=route)
        made.sink("out", "rows", Memory())
        with pytest.raises(InvalidTopology) as error:
            build(made, session, Reading(0.0))
        return str(error.value)

    said = refused(stream(10, 1), Route("hash", key="vehicle"))
    assert said.startswith("source 'rows': route column 'vehicle' is not in its schema; columns:")
    said = refused(stream(10, 1), Route("panes", time="value", window="2s", slide="1s"))
    assert "route column 'value' is of type double; Route(time) must be" in said
    rate = lambda session: session.readStream.format("rate").load()  # noqa: E731
    said = refused(rate, Route("hash", key="value"))
    assert "source 'rows': route is given, but only lanes" in said


@pytest.mark.long
def test_rows_behind_a_shuffle_are_dealt_by_cost_and_each_is_answered_once(
    session: SparkSession, tmp_path: Path
) -> None:
    """Counts by key go to a stateless step whose costs differ by key."""
    made = Topology("inside", max_latency="20s")
    made.source("rows", Generator(constant(400.0), keys=40, seed=2, rows=2_000, max_rows=400))
    made.add("counts", "SELECT key, count(*) AS n FROM rows GROUP BY key", "rows")

    def answer(batches: Iterator[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        assert context is not None
        task = context.partitionId()
        for batch in batches:
            keys = batch.column("key").to_pylist()
            time.sleep(sum(0.02 if key == 3 else 0.001 for key in keys))
            tasks = pa.array([task] * batch.num_rows, pa.int32())
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, tasks], names=[*batch.schema.names, "task"]
            )

    @made.operator("counts", route=Route("osg", key="key", partitions=3, period="1s"))
    def answers(counts: Any) -> Any:
        function = costed(answer, by="key", source="answers")
        return counts.mapInArrow(function, "key BIGINT, n BIGINT, task INT")

    made.sink("out", "answers", Memory(), mode="update")
    with RunningTopology(made, session, tmp_path / "inside", Pace(once=True)) as running:
        assert running.wait(LIMIT_S)
        found = running.rows("out")
        exchange = RouteExchange(running.routes_folder / "answers")
        named = [exchange.named(batch) for batch in range(5)]
    last = {row.key: row.n for row in sorted(found, key=lambda row: row.n)}
    assert sum(last.values()) == 2_000
    assert {row.task for row in found} == {0, 1, 2}
    assert all(version is not None for version in named)
    assert len(found) == len({(row.key, row.n) for row in found}), "no row came twice"
