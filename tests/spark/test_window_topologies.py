"""window_aggregate as an operator: what is refused, planned, measured, and told of mistakes."""

import importlib.util
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.dataset as ds
import pytest
from pyspark.cloudpickle import register_pickle_by_value
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import penstock
from examples.traffic import FAST_KMH, SLOW_KMH, grid_areas, traffic
from penstock import UserAggregate, window_aggregate
from penstock.errors import InvalidInput, InvalidTopology, PenstockError
from penstock.model.sinks import Files, Memory
from penstock.model.topology import Topology
from penstock.scaling.policies.registry import policy
from penstock.spark.compile.builder import build
from penstock.spark.compile.inspection import Reading
from penstock.spark.measure.together import SparkMeasurer
from penstock.spark.run.before_start import check_monitoring_window, windows_of
from penstock.spark.run.together import Pace, RunningTopology
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant
from spark.run_to import settled

pytestmark = pytest.mark.spark
for module in (__name__, traffic.__module__):  # workers can import neither
    register_pickle_by_value(sys.modules[module])

STREAM = Generator(constant(1000.0), keys=20, seed=5, rows=4000, lanes=2, max_rows=2000)
ONCE = Pace(once=True)
GOOD: dict[str, Any] = {"by": "key", "window": "2s", "slide": "1s", "aggregates": {"n": "count"}}


def sliding(watermarked: bool = True, **changes: Any) -> Topology:
    made = Topology("slid", max_latency="30s")
    made.source("rows", STREAM)

    @made.operator("rows")
    def slid(rows: Any) -> Any:
        timed = rows.withWatermark("at", "1 second") if watermarked else rows
        return window_aggregate(timed, **{**GOOD, **changes})

    made.sink("out", "slid", Memory(), mode=changes.get("mode", "append"))
    return made


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"slide": "3s"}, "slide '3s' is longer than window '2s'"),
        ({"window": "two"}, "window is 'two'; write a duration"),
        ({"window": 0}, "window is 0; give at least 1 row"),
        ({"window": 5, "slide": "1s"}, "slide is '1s'; with a window of 5 rows"),
        ({"by": "nokey"}, "by names 'nokey', which is not a column; columns: row, key, value, at"),
        ({"by": 7}, "by is 7; give a column name"),
        ({"time": "value"}, "time is 'value' of type double; give a timestamp"),
        ({"time": "when"}, "time is 'when', which is not a column"),
        ({"mode": "complete"}, "mode is 'complete'; allowed: append, update"),
        ({"watermarked": False}, "column 'at' has no watermark"),
        ({"buckets": 0}, "buckets is 0; give a number from 1"),
        ({"aggregates": {}}, "aggregates is {}; give names"),
        ({"aggregates": {"n": "median(value)"}}, "'n' is 'median(value)'; allowed: count, sum"),
        ({"aggregates": {"n": "sum"}}, "'n' is 'sum'; say of what"),
        ({"aggregates": {"n": "sum(nothing)"}}, "nothing"),
        ({"aggregates": {"key": "count"}}, "the name 'key' is taken"),
        ({"aggregates": {"n": "min(array(value))"}}, "is of type array<double>; allowed"),
    ],
)
def test_bad_arguments_are_refused_with_a_sentence(
    session: SparkSession, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidTopology) as error:
        build(sliding(**changes), session, Reading(0.0))
    text = str(error.value)
    assert said in text
    assert text.startswith("operator 'slid': ")
    assert "\n" not in text


def test_a_sink_of_another_mode_is_refused(session: SparkSession) -> None:
    made = sliding()
    made.sink("more", "slid", Memory(), mode="update")
    with pytest.raises(InvalidTopology, match="sink 'more': mode 'update'"):
        build(made, session, Reading(0.0))


def test_it_is_planned_by_its_keys_and_measured_by_key_group(
    session: SparkSession, tmp_path: Path
) -> None:
    made = sliding(aggregates={"n": "count", "most": "max(row)"})
    made.add("busy", "SELECT * FROM slid WHERE n > 3", "slid")
    made.sink("files", "busy", Files(str(tmp_path / "busy")))
    with RunningTopology(made, session, tmp_path / "checkpoint", ONCE) as running:
        measurer = SparkMeasurer(running)
        running.wait(120)
        settled(running)
        observed = measurer.observe()
        rows = running.rows("out")
        epoch_s = running.epoch_s
        plan = running.built.plan
    # Spark runs one such step in a query, so each sink has its own.
    components = [c for q in plan.queries for c in q.components if "slid" in c.operators]
    assert [c.key for c in components] == [("key",), ("key",)]
    assert running.built.schemas["slid"] == (
        "struct<key:bigint,window:struct<start:timestamp,end:timestamp>,n:bigint,most:bigint>"
    )
    assert "slid" in str(observed)
    batch = session.createDataFrame(STREAM.batch(0, 4000, epoch_s).to_pandas())
    windows = batch.groupBy("key", F.window("at", "2 seconds", "1 second")).agg(
        F.count("*").alias("n"), F.max("row").alias("most")
    )
    last = batch.agg(F.max("at") - F.expr("INTERVAL 1 SECOND")).first()[0]
    closed = windows.where(F.col("window.end") <= F.date_trunc("millisecond", F.lit(last)))
    assert Counter(rows) == Counter(closed.collect())
    found = ds.dataset([str(f) for f in (tmp_path / "busy").glob("batch=*/*.parquet")]).to_table()
    assert found.num_rows == sum(row.n > 3 for row in rows)


def _total(update: Any, merge: Any = None) -> UserAggregate:
    return UserAggregate(
        columns=["row", "key"], state="total BIGINT", returns="BIGINT", batches="pandas",
        init=lambda: {"total": 0}, update=update,
        merge=merge or (lambda left, right: {"total": left["total"] + right["total"]}),
        result=lambda state: state["total"],
    )  # fmt: skip


def _sum(state: dict[str, int], rows: pd.DataFrame) -> dict[str, int]:
    return {"total": state["total"] + int(rows["row"].sum())}


def _sum_until_it_breaks(state: dict[str, int], rows: pd.DataFrame) -> dict[str, int]:
    if ((rows["key"] == 7) & (rows["row"] >= 2000)).any():
        raise RuntimeError("no such road")
    return _sum(state, rows)


def test_a_users_mistake_stops_the_query_and_a_mended_one_goes_on(
    session: SparkSession, tmp_path: Path
) -> None:
    def run(aggregate: UserAggregate) -> list[Any]:
        made = sliding(aggregates={"n": "count", "total": aggregate})
        with RunningTopology(made, session, tmp_path / "checkpoint", ONCE) as running:
            running.wait(120)
            epochs.append(running.epoch_s)
            return running.rows("out")

    epochs: list[float] = []
    with pytest.raises(PenstockError) as error:
        run(_total(_sum_until_it_breaks))
    text = str(error.value)
    assert text.startswith(
        "query 'slid' failed in batch 1: operator 'slid': aggregate 'total': update raised"
    )
    assert "RuntimeError: no such road, at key (key=7)." in text
    assert "\n" not in text
    commits = sorted((tmp_path / "checkpoint/queries/slid/commits").glob("[0-9]*"))
    assert [file.name for file in commits] == ["0"]  # the batch before it stands
    with pytest.raises(PenstockError, match=r"merge returned \{'total': 'x'\}, which is not of"):
        run(_total(_sum, lambda left, right: {"total": "x"}))
    rows = run(_total(_sum))
    batch = STREAM.batch(0, 4000, epochs[-1]).to_pandas()
    start = batch["at"].dt.floor("1s")
    expected: Counter[Any] = Counter()
    for back in (0, 1):
        for key, at, row in zip(batch["key"], start, batch["row"], strict=True):
            expected[key, at - pd.Timedelta(seconds=back)] += row
    assert rows
    for row in rows:
        assert row.total == expected[row.key, pd.Timestamp(row.window.start, tz="UTC")]


@pytest.mark.parametrize("mode", ["append", pytest.param("update", marks=pytest.mark.long)])
def test_state_may_follow_sliding_windows(session: SparkSession, tmp_path: Path, mode: str) -> None:
    made = Topology("slid", max_latency="30s")
    made.source("rows", STREAM)

    @made.operator("rows")
    def slid(rows: Any) -> Any:
        return window_aggregate(rows.withWatermark("at", "1 second"), **GOOD)

    def most(slid: Any) -> Any:
        second = F.window(F.window_time("window"), "1 second").alias("second")
        return slid.groupBy(second).agg(F.max("n").alias("most"), F.count("*").alias("keys"))

    made.add("busiest", most, "slid")
    made.sink("out", "busiest", Memory(), mode=mode)
    with RunningTopology(made, session, tmp_path / "checkpoint", ONCE) as running:
        running.wait(120)
        found = {row.second.end: (row.most, row["keys"]) for row in running.rows("out")}
        epoch_s = running.epoch_s
    batch = session.createDataFrame(STREAM.batch(0, 4000, epoch_s).to_pandas())
    windows = batch.groupBy("key", F.window("at", "2 seconds", "1 second")).agg(
        F.count("*").alias("n")
    )
    last = batch.agg(F.max("at") - F.expr("INTERVAL 1 SECOND")).first()[0]
    until = F.col("window.end").alias("until")
    rows = windows.where(until <= F.date_trunc("millisecond", F.lit(last))).groupBy(until)
    expected = rows.agg(F.max("n"), F.count("*")).collect()
    assert found == {row[0]: (row[1], row[2]) for row in expected}
    assert len(found) > 1


def test_the_traffic_query(session: SparkSession, tmp_path: Path) -> None:
    city = traffic(
        constant(1000.0), Memory(), window="2s", slide="500ms", delay="500 milliseconds",
        precision_m=2_000, rows=3_000, max_rows=1_500, lanes=2,
    )  # fmt: skip
    with RunningTopology(city, session, tmp_path / "checkpoint", ONCE) as running:
        running.wait(120)
        rows = running.rows("out")
        epoch_s = running.epoch_s
    source = city.find_source("input")
    assert source is not None
    batch = session.createDataFrame(source.reader.batch(0, 3_000, epoch_s).to_pandas())
    batch.createOrReplaceTempView("input")
    reports = session.sql(city.find_operator("reports").sql or "").toPandas()
    reports = reports[reports["report_type"] == "traffic"]
    reports["area"] = grid_areas(
        reports["longitude"].to_numpy(), reports["latitude"].to_numpy(), 2_000
    )
    at = reports["time"].astype("datetime64[us]").astype("int64")
    ends = Counter(row.queue_end for row in rows)
    assert ends[True] > 0
    assert ends[False] > 0
    for row in rows[:: max(1, len(rows) // 50)]:
        start = int(pd.Timestamp(row.window.start).value // 1000)
        inside = reports[(reports["area"] == row.area) & (at >= start) & (at < start + 2_000_000)]
        assert row.reports == len(inside)
        assert row.top_speed == inside["speed"].max()
        assert row.mean_speed == pytest.approx(inside["speed"].mean())
        slow, fast = (inside["speed"] < SLOW_KMH).sum(), (inside["speed"] >= FAST_KMH).sum()
        between = len(inside) - slow - fast
        assert row.queue_end == (min(slow, fast) > max(0.1 * len(inside), between / 2))


def test_windows_of_rows(session: SparkSession, tmp_path: Path) -> None:
    made = sliding(
        window=10, slide=4, aggregates={"n": "count", "low": "min(row)", "high": "max(row)"}
    )
    with RunningTopology(made, session, tmp_path / "checkpoint", ONCE) as running:
        running.wait(120)
        found = running.rows("out")
        epoch_s = running.epoch_s
    rows = STREAM.batch(0, 4000, epoch_s).to_pandas().groupby("key")["row"].agg(list)
    expected = Counter(
        (key, (start, start + 10), 10, numbers[start], numbers[start + 9])
        for key, numbers in rows.items()
        for start in range(0, len(numbers) - 9, 4)
    )
    counted = Counter((row.key, tuple(row.window), row.n, row.low, row.high) for row in found)
    assert counted == expected


def test_the_example(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Path(__file__).parents[2] / "examples/traffic.py"
    spec = importlib.util.spec_from_file_location("traffic_example", file)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    monkeypatch.chdir(tmp_path)
    with RunningTopology(example.city, session, tmp_path / "checkpoint", ONCE) as running:
        running.wait(120)
        plan = running.built.plan
    keys = {c.name: c.key for query in plan.queries for c in query.components}
    assert keys["queues"] == ("area",)
    files = [str(f) for f in (tmp_path / "out/traffic").glob("batch=*/*.parquet")]
    assert set(ds.dataset(files).to_table()["queue_end"].to_pylist()) == {True, False}


def test_attach_refuses_a_monitoring_window_shorter_than_those_of_the_query(
    session: SparkSession, tmp_path: Path
) -> None:
    query = (
        session.readStream.format("rate").load().withWatermark("timestamp", "1 second")
        .groupBy(F.window("timestamp", "3 minutes", "1 minute")).count()
        .writeStream.format("noop").queryName("plain").trigger(processingTime="1 hour")
        .option("checkpointLocation", str(tmp_path / "c")).start()
    )  # fmt: skip
    options = {"policy": "autoscale", "history": str(tmp_path / "h.sqlite"), "dry_run": True}
    for target in (query, session):
        with pytest.raises(InvalidInput, match="query 'plain' computes over windows of 180 s"):
            penstock.attach(target, "2h", policy_options={"window_s": 180}, **options)
    penstock.attach(query, "2h", policy_options={"window_s": 181}, **options).detach()
    query.stop()


def test_the_length_of_windows_is_known_before_anything_runs(session: SparkSession) -> None:
    """Spark's own, tumbling and sliding, and ours; an operator without any has none."""
    made = sliding(window="90s", slide="30s")
    made.add("timed", lambda rows: rows.withWatermark("at", "1 second"), "rows")
    for name, span in (("tumbling", "'2 minutes'"), ("slides", "'3 minutes', '1 minute'")):
        text = f"SELECT count(*) AS n FROM timed GROUP BY window(at, {span})"
        made.add(name, text, "timed")
        made.sink(f"{name}_out", name, Memory())
    found = build(made, session, Reading(0.0)).inspection.operators
    assert {name: one.window_s for name, one in found.items()} == {
        "slid": 90.0, "timed": 0.0, "tumbling": 120.0, "slides": 180.0,
    }  # fmt: skip
    with pytest.raises(InvalidInput, match="operator 'slides' computes over windows of 180 s"):
        check_monitoring_window(policy("autoscale"), windows_of(build(made, session, Reading(0.0))))
