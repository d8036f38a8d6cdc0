"""Routes that follow from the query, and routes by what Spark computes."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from examples.traffic import traffic
from penstock import window_aggregate
from penstock.errors import InvalidTopology
from penstock.model.route import Route
from penstock.model.sinks import Memory
from penstock.model.topology import Topology
from penstock.spark.compile.builder import build
from penstock.spark.compile.inspection import Reading
from penstock.spark.measure.together import SparkMeasurer
from penstock.spark.run.explain import routes_in_words
from penstock.spark.run.together import Pace, RunningTopology
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant
from spark.run_to import settled

pytestmark = pytest.mark.spark


def over(step: Any, stateless: str | None = None, route: Any = "auto", rows: int = 10) -> Topology:
    """rows -> [stateless ->] step -> out, in the step's own mode."""
    made = Topology("inferred", max_latency="10s")
    stream = Generator(
        constant(1e6), rows=rows, max_rows=max(1, rows // 3), keys=20, skew=1.5, lanes=2
    )
    made.source("rows", stream, route=route)
    if stateless is not None:
        made.add("mapped", stateless, upstream="rows")
    made.add("step", step, upstream="rows" if stateless is None else "mapped")
    made.sink("out", "step", Memory(), mode=getattr(step, "mode", "update"))
    return made


def counted(*by: str) -> Any:
    """Rows by columns or expressions, as SQL has them."""

    def step(frame: Any) -> Any:
        timed = frame.withWatermark("at", "1 second")
        return timed.groupBy(*(F.expr(one) for one in by)).count()

    return step


def windows(mode: str = "update", **more: Any) -> Any:
    def step(frame: Any) -> Any:
        timed = frame.withWatermark("at", "1 second")
        return window_aggregate(timed, aggregates={"n": "count"}, mode=mode, **more)

    step.mode = mode  # type: ignore[attr-defined]
    return step


MAPPED = "SELECT at, row, key, key % 3 AS area, value FROM rows"
HOT = Route("frequency-aware", key="key")


@pytest.mark.parametrize(
    ("step", "stateless", "expected"),
    [
        (counted("key"), None, HOT),
        (counted("key"), MAPPED, HOT),  # a column that the map hands on is still written by lanes
        (counted("area"), MAPPED, Route(key="area", after="mapped")),
        (counted("key", "window(at, '10 seconds')"), None, HOT),
        (windows(by="key", window="10s", slide="2s"), None, HOT),
        (windows(by="area", window="10s", slide="2s"), MAPPED, Route(key="area", after="mapped")),
        (counted("key % 7"), None, Route(key="(`key` % CAST(7 AS BIGINT))")),
        (counted("window(at, '10 seconds', '2 seconds')"), None,
         Route("rate-aware-panes", time="at", window=10.0, slide=2.0)),
        (counted("window(at, '10 seconds')"), MAPPED,
         Route("rate-aware-panes", time="at", window=10.0, slide=10.0)),
        (windows(by=(), window="10s", slide="2s"), None,
         Route("rate-aware-panes", time="at", window=10.0, slide=2.0)),
        (lambda rows: rows.withWatermark("at", "1 second").dropDuplicates(["key"]), None,
         Route("consistent", key="key")),
        (windows("append", by="key", window=10, slide=5), None, Route("consistent", key="key")),
        (windows("append", by="key", window=10, slide=5, number="row"), None, HOT),
        (lambda rows: rows.where("value > 0.5"), None, Route("round-robin")),
    ],
)  # fmt: skip
def test_what_rows_meet_by_first_says_how_they_are_spread(
    session: SparkSession, step: Any, stateless: str | None, expected: Route
) -> None:
    built = build(over(step, stateless), session, Reading(0.0))
    (source,) = built.topology.sources
    assert source.route == expected


def test_a_route_by_what_an_operator_computes_is_obeyed_and_learns(
    session: SparkSession, tmp_path: Path
) -> None:
    """Hot areas are in parts from the second table on, and meet again in the counts."""
    rows = 6_000
    route = Route("auto", partitions=3, period=0.001)
    made = over(counted("area"), MAPPED, route, rows)
    made.add("tasks", _with_task, upstream="mapped")
    made.sink("raw", "tasks", Memory(), mode="update")
    with RunningTopology(made, session, tmp_path / "checkpoint", Pace(once=True)) as running:
        measurer = SparkMeasurer(running)
        assert running.wait(120)
        settled(running)
        found, raw, observed = running.rows("out"), running.rows("raw"), measurer.observe()
    reader = made.sources[0].reader
    keys = reader.batch(0, rows, 0.0).column("key").to_pylist()
    expected = Counter(key % 3 for key in keys)
    counts: dict[int, int] = {}
    for row in found:
        counts[row.area] = max(counts.get(row.area, 0), row["count"])
    assert counts == expected
    assert sorted(row.row for row in raw) == list(range(rows))
    later = [row for row in raw if row.row >= 2_000]
    assert {row.task for row in later} == {0, 1, 2}
    assert len({row.task for row in later if row.area == 0}) > 1, "a hot area is split"
    tables = sorted((tmp_path / "checkpoint/penstock/routes/rows/tables").glob("*.json"))
    assert json.loads(tables[-1].read_text())["reasons"], "it has learnt of areas"
    assert observed is not None
    assert [one.source for one in observed.routes] == ["rows"]
    assert observed.routes[0].table == tables[-1].stem or len(tables) > 1


def _with_task(mapped: Any) -> Any:
    return mapped.withColumn("task", F.spark_partition_id())


def test_the_papers_query_is_routed_by_the_area_that_its_map_computes(
    session: SparkSession,
) -> None:
    city = traffic(constant(1_000), Memory(), rows=1_000, route=Route("auto", partitions=2))
    built = build(city, session, Reading(0.0))
    assert built.topology.sources[0].route == Route(key="area", after="areas", partitions=2)
    assert routes_in_words(city, built.topology)["input"].startswith(
        "frequency-aware by area of areas over 2 tasks"
    )
    assert routes_in_words(city, built.topology)["input"].endswith("(inferred from the query)")


@pytest.mark.parametrize(
    ("route", "words"),
    [
        (Route(key="area", after="nowhere"), "it must be an operator: mapped, step"),
        (Route(key="area", after="step"), "but 'step' shuffles its rows"),
        (Route(key="nothing", after="mapped"), "route column 'nothing' is neither"),
        (Route(key="nothing % 3"), "route column 'nothing % 3' is neither"),
        (Route(key="nothing"), "route column 'nothing' is not in its schema"),
    ],
)
def test_a_route_by_what_is_not_there_is_refused(
    session: SparkSession, route: Route, words: str
) -> None:
    with pytest.raises(InvalidTopology, match=words):
        build(over(counted("area"), MAPPED, route), session, Reading(0.0))
