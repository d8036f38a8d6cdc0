"""Another number of key groups for a checkpoint: the same rows afterwards, and nothing lost."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic

import pytest
from pyspark.sql import SparkSession

import penstock
from penstock.errors import InvalidTopology
from penstock.model.sinks import Memory
from penstock.spark.checkpoint import key_groups
from penstock.spark.checkpoint.key_groups import change_key_groups
from penstock.spark.checkpoint.stored_query import PARTITIONS
from penstock.spark.handles.state_reading import StoreDigest
from penstock.spark.run.together import Pace, RunningTopology
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant
from spark.diamond_run import diamond, expected, tolls
from spark.run_to import run_to

pytestmark = pytest.mark.spark

KEY_GROUPS = 3
STREAM = Generator(constant(1000.0), keys=60, seed=5, rows=5000, lanes=2, max_rows=700)


@contextmanager
def with_key_groups(session: SparkSession, number: int) -> Iterator[None]:
    before = session.conf.get(PARTITIONS)
    session.conf.set(PARTITIONS, str(number))
    try:
        yield
    finally:
        session.conf.set(PARTITIONS, str(before))


@pytest.mark.long
@pytest.mark.parametrize("number", [5, 2])
def test_aggregations_and_a_join_go_on_in_other_key_groups(
    session: SparkSession, tmp_path: Path, number: int
) -> None:
    made, checkpoint = diamond(Memory(), STREAM), tmp_path / "c"
    with RunningTopology(made, session, checkpoint, Pace()) as running:
        run_to(running, 3)
    rows = tolls(row.asDict() for row in running.rows("tolls"))
    (changed,) = change_key_groups(session, checkpoint, number)
    assert (changed.before, changed.after) == (KEY_GROUPS, number)
    assert changed.rows > 60
    old = Path(changed.kept)
    assert (old / "commits").is_dir()
    assert change_key_groups(session, checkpoint, number) == ()
    with (
        pytest.raises(InvalidTopology, match=f"created with key_groups {number}, not 3"),
        RunningTopology(made, session, checkpoint, Pace(once=True)),
    ):
        pass
    with with_key_groups(session, number):
        with RunningTopology(made, session, checkpoint, Pace(once=True)) as running:
            run_to(running, None)
        rows += tolls(row.asDict() for row in running.rows("tolls"))
    epoch_s = json.loads((checkpoint / "penstock/epoch.json").read_text())["epoch_s"]
    assert rows == expected(epoch_s, STREAM)
    assert not old.exists()


def test_a_query_without_penstock_goes_on_in_other_key_groups(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    incoming, checkpoint = tmp_path / "in", tmp_path / "c"
    found: dict[int, int] = {}

    def count(first: int) -> None:
        session.range(first, first + 40).selectExpr("id % 20 AS k").coalesce(1).write.mode(
            "append"
        ).json(str(incoming))
        query = (
            session.readStream.schema("k BIGINT").json(str(incoming)).groupBy("k").count()
            .writeStream.outputMode("update").option("checkpointLocation", str(checkpoint))
            .foreachBatch(lambda rows, _: found.update(map(tuple, rows.collect())))
            .trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination()

    count(0)
    with monkeypatch.context() as broken:
        digests = iter([1, 2])
        lost = StoreDigest(0, "state", 1, 5, 0)
        broken.setattr(key_groups, "state_digests", lambda *_: [replace(lost, rows=next(digests))])
        with pytest.raises(InvalidTopology, match=r"read back differs .*1 rows -> 2"):
            change_key_groups(session, checkpoint, 7)
    (changed,) = change_key_groups(session, checkpoint, 7)
    assert (changed.before, changed.after, changed.rows) == (KEY_GROUPS, 7, 20)
    count(40)
    assert Counter(found.values()) == {4: 20}
    assert len(list((checkpoint / "state/0").glob("[0-9]*"))) == 7


@pytest.mark.long
def test_a_small_attached_query_in_two_hundred_key_groups_is_told_what_they_cost(
    session: SparkSession, tmp_path: Path
) -> None:
    with with_key_groups(session, 200):
        query = (
            session.readStream.format("rate").option("rowsPerSecond", 100).load()
            .selectExpr("value % 20 AS k").groupBy("k").count()
            .writeStream.outputMode("update").format("noop").queryName("small")
            .option("checkpointLocation", str(tmp_path / "c")).start()
        )  # fmt: skip
    advised, deadline = [], monotonic() + 150
    options = {"period_s": 1.0, "history": str(tmp_path / "history.sqlite"), "dry_run": True}
    with penstock.attach(query, max_latency="5s", executors=(1, 2), **options) as controller:
        while not advised and monotonic() < deadline and not query.awaitTermination(0.5):
            seen = [step.observation for step in controller.steps if step.observation is not None]
            advised = [made for one in seen for made in one.decided if made.room == "key groups"]
    query.stop()
    (made,) = advised
    assert made.numbers["present"] == 200
    assert made.numbers["enough"] <= 8
    assert made.numbers["cost_s"] > 10 * made.numbers["then_s"]
