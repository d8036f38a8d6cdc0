"""Branches of a fused component: one read, one shuffle and one set of tasks for all of them."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from examples.linear_road import Windows, linear_road
from penstock.model.plan_document import Group
from penstock.model.sinks import Memory
from penstock.model.topology import Topology
from penstock.spark import handles
from penstock.spark.compile.fused import PlanChoice
from penstock.spark.run.together import Pace, RunningTopology
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant

pytestmark = pytest.mark.spark

KEY_GROUPS, LANES = 3, 2
EPOCH_S = 1_700_000_000.0  # the same for all runs, so that their rows can be compared
# It ends between two windows: Spark moves filters below a watermark that has one consumer, and
# which windows are closed would hang on the last rows that such a filter lets pass.
STREAM = Generator(constant(1000.0), keys=60, seed=5, rows=3200, lanes=LANES, max_rows=1600)
SHORT = Windows("1 second", "2 seconds", "1 second")
ROAD = (Group(("speeds", "segments", "tolls", "accidents"), ("direction", "segment")),)
BRANCHES = (Group(("first", "second"), ("b",)),)


def run(
    topology: Topology, session: SparkSession, folder: Path, groups: tuple[Group, ...]
) -> tuple[dict[str, Counter[Any]], set[tuple[int, ...]]]:
    """The rows of every sink, and how many tasks the stages of a batch had."""
    (folder / "penstock").mkdir(parents=True, mode=0o700)
    (folder / "penstock/epoch.json").write_text(json.dumps({"epoch_s": EPOCH_S}))
    choice = PlanChoice(groups)
    with RunningTopology(topology, session, folder, Pace(once=True), choice=choice) as ran:
        assert ran.wait(120)
        ran.raise_failure()
        jobs = handles.jobs_of_group(session, str(ran.queries[0].runId))
    stages = [handles.stages(session, job.stage_ids) for job in jobs]
    tasks = [tuple(sorted(s.tasks for s in of_job if s.tasks)) for of_job in stages]
    return {sink.name: Counter(ran.rows(sink.name)) for sink in topology.sinks}, set(tasks)


def branches(second: Any) -> Topology:
    made = Topology("branches", max_latency="60s")
    made.source("rows", STREAM)
    made.add("cut", "SELECT key AS a, key % 7 AS b, value, at FROM rows", "rows")
    made.add("first", _counted("a, b", "1 second"), "cut", key=["a", "b"])
    made.add("second", second, "cut", key="b")
    made.sink("first_out", "first", Memory())
    made.sink("second_out", "second", Memory())
    return made


def _counted(columns: str, delay: str) -> Any:
    def counted(rows: DataFrame) -> DataFrame:
        timed = rows.withWatermark("at", delay)
        text = f"""SELECT {columns}, window, count(*) AS n FROM {{timed}} WHERE value < 0.9
                   GROUP BY {columns}, window(at, '1 second')"""
        return timed.sparkSession.sql(text, timed=timed)

    return counted


@pytest.mark.long
def test_branches_with_one_watermark_share_everything(
    session: SparkSession, tmp_path: Path
) -> None:
    made = branches(_counted("b", "1 second"))
    fused, tasks = run(made, session, tmp_path / "fused", BRANCHES)
    plain, _ = run(made, session, tmp_path / "plain", ())
    assert fused == plain
    assert all(fused.values())
    assert (LANES, KEY_GROUPS) in tasks
    assert tasks <= {(LANES, KEY_GROUPS), (KEY_GROUPS,)}  # the second: a batch without rows


@pytest.mark.parametrize(
    "second",
    [
        _counted("b", "2 seconds"),
        pytest.param(lambda rows: _counted("b", "1 second")(rows.dropna()), marks=pytest.mark.long),
    ],
)
def test_branches_whose_watermarks_differ_divide_their_rows_each(
    session: SparkSession, tmp_path: Path, second: Any
) -> None:
    made = branches(second)
    fused, tasks = run(made, session, tmp_path / "fused", BRANCHES)
    plain, _ = run(made, session, tmp_path / "plain", ())
    assert fused == plain
    assert all(fused.values())
    assert (LANES, LANES, KEY_GROUPS) in tasks


@pytest.mark.long
def test_a_road_beside_traffic_that_is_divided_otherwise(
    session: SparkSession, tmp_path: Path
) -> None:
    made = linear_road(STREAM, Memory(), Memory(), Memory(), windows=SHORT, max_latency="60s")
    fused, tasks = run(made, session, tmp_path / "fused", ROAD)
    plain, _ = run(made, session, tmp_path / "plain", ())
    assert fused == plain
    assert all(fused.values())
    # Reports are read once; traffic divides them again, and runs beside the component.
    assert (LANES, KEY_GROUPS, KEY_GROUPS + KEY_GROUPS) in tasks
