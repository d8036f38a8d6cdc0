"""Where there is one executor, few tasks do the work of all key groups; their state stays apart."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.model.sinks import Memory
from penstock.model.topology import Topology
from penstock.spark import handles
from penstock.spark.compile.builder import build
from penstock.spark.compile.inspection import Reading
from penstock.spark.measure.together import SparkMeasurer
from penstock.spark.run.together import Pace, RunningTopology
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant
from spark.run_to import settled

pytestmark = pytest.mark.spark

KEY_GROUPS, SLOTS, LANES = 8, 2, 2
STREAM = Generator(constant(1000.0), keys=50, seed=5, rows=3000, lanes=LANES, max_rows=1000)
PER_KEY = "SELECT key, count(*) AS n FROM rows GROUP BY key"
PER_REST = "SELECT key % 7 AS rest, sum(row) AS total FROM rows GROUP BY key % 7"


def counted() -> Topology:
    made = Topology("counted", max_latency="60s")
    made.source("rows", STREAM)
    made.add("keys", PER_KEY, "rows")
    made.add("rests", PER_REST, "rows")
    made.add("first", "SELECT * FROM rows WHERE row < 10", "rows")
    for node in ("keys", "rests", "first"):
        made.sink(f"{node}_out", node, Memory(), mode="update")
    return made


def test_results_and_state_are_those_of_a_task_for_each_key_group(
    session: SparkSession, tmp_path: Path
) -> None:
    with RunningTopology(counted(), session, tmp_path / "c", Pace(once=True)) as running:
        measurer = SparkMeasurer(running)
        running.wait(120)
        settled(running)
        observed = measurer.observe()
        found = {name: running.rows(f"{name}_out") for name in ("keys", "rests", "first")}
        jobs = handles.jobs_of_group(session, str(running.queries[0].runId))
        epoch_s = running.epoch_s
    last = [handles.stages(session, job.stage_ids)[-1].tasks for job in jobs]
    assert set(last) == {2 * SLOTS + KEY_GROUPS}, "stateless rows come from the shared exchange"
    rows = STREAM.batch(0, 3000, epoch_s).to_pandas()
    newest = {row.key: row.n for row in found["keys"]}
    assert newest == Counter(rows["key"].tolist())
    totals = {row.rest: row.total for row in found["rests"]}
    assert totals == rows.groupby(rows["key"] % 7)["row"].sum().to_dict()
    assert sorted(row.row for row in found["first"]) == list(range(10))
    state = tmp_path / "c/queries/counted/state"
    stores = {(p.parent.name, p.name) for p in state.glob("*/*") if p.name.isdigit()}
    assert len(stores) == 2 * KEY_GROUPS
    assert observed is not None
    parts = {one.name: one for one in observed.components}
    for name in ("keys", "rests"):
        assert parts[name].tasks == SLOTS
        assert parts[name].key_groups is not None
        assert len(parts[name].key_groups.load_s) == KEY_GROUPS
        assert (parts[name].key_groups.load_s > 0).all()


def _gathers(session: SparkSession, made: Topology, tasks: int | None) -> Any:
    (query,) = build(made, session, Reading(0.0), tasks=tasks).queries
    return str(query.frame._jdf.queryExecution().analyzed().toString()).count(
        "Repartition 2, false"
    )


def test_what_needs_a_task_for_each_key_group_keeps_it(session: SparkSession) -> None:
    assert _gathers(session, counted(), SLOTS) == 2
    assert _gathers(session, counted(), None) == 0, "key groups that are placed"
    assert _gathers(session, counted(), KEY_GROUPS - 1) == 0, "too many for anything to be gained"
