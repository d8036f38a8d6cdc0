"""Components apart with a loop: latency as measured and as rows tell it, and DRS over it."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from examples.patterns import Tweets, frequent_patterns
from penstock.config import Settings
from penstock.control.step import Step
from penstock.model.batch_overhead import BatchOverhead
from penstock.model.decision import Limits, ScalingPlan
from penstock.model.observation import LatencyObservation, Observation
from penstock.model.sinks import ForeachBatch, Memory
from penstock.model.topology import Topology
from penstock.scaling.policies.drs import Drs
from penstock.scaling.policies.drs_inputs import read_inputs
from penstock.scaling.policies.policy import ScalingContext
from penstock.spark.measure.apart import ApartMeasurer
from penstock.spark.run.apart import RunningApart
from penstock.spark.run.elastic import ElasticRun
from penstock.spark.run.place import Place
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant

pytestmark = pytest.mark.spark

APART, KEY_GROUPS = True, 4

RATE = 200.0


class Probe:
    """What rows that carry the time of their arrival say when they are written."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, int, float]] = []  # when, rows, seconds in all

    def __call__(self, frame: Any, _: int) -> None:
        arrived = [row.at.timestamp() for row in frame.select("at").collect()]
        now_s = time.time()
        self.seen.append((now_s, len(arrived), sum(now_s - at for at in arrived)))

    def mean_s(self, since_s: float) -> float:
        kept = [(rows, late) for at_s, rows, late in self.seen if at_s >= since_s]
        return sum(late for _, late in kept) / max(1, sum(rows for rows, _ in kept))


def going_round(probe: Probe, wait_s: float = 0.0) -> Topology:
    """A row goes through the middle component once or more often, by chance, with its time."""
    made = Topology("round", max_latency="20s")
    made.source("rows", Generator(constant(RATE), keys=5, seed=2, lanes=2))
    made.feedback("again", "back", "row BIGINT, at TIMESTAMP, passes BIGINT, done BOOLEAN")

    def waiting(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            time.sleep(wait_s * batch.num_rows)
            yield batch

    @made.operator("rows", separate=True)
    def begin(rows: Any) -> Any:
        wanted = rows.selectExpr("row", "at", "row - row AS passes", "row < 0 AS done")
        return wanted.mapInArrow(waiting, wanted.schema) if wait_s else wanted

    made.add(
        "pass_on",
        "SELECT row, at, passes + 1 AS passes, pmod(row * 7 + passes * 13, 3) > 0 AS done "
        "FROM (SELECT * FROM begin UNION ALL SELECT * FROM again)",
        ["begin", "again"],
    )
    made.add("back", "SELECT * FROM pass_on WHERE NOT done", "pass_on")
    made.add("report", "SELECT row, at FROM pass_on WHERE done", "pass_on", separate=True)
    made.sink("probe", "report", ForeachBatch(probe))
    return made


def weighed_s(observations: list[Observation]) -> float:
    found: list[LatencyObservation] = [o.latency for o in observations if o.latency is not None]
    return sum(one.mean_s * one.count for one in found) / sum(one.count for one in found)


@pytest.mark.long
def test_latency_through_a_loop_is_what_rows_with_their_time_say(
    session: SparkSession, tmp_path: Path
) -> None:
    probe = Probe()
    with RunningApart(going_round(probe), session, tmp_path / "round") as running:
        measurer = ApartMeasurer(running)
        deadline_s = time.time() + 60
        while sum(rows for _, rows, _ in probe.seen) < 6 * RATE and time.time() < deadline_s:
            time.sleep(0.2)
        measurer.observe()  # until now things started
        since_s, seen = time.time(), list[Observation]()
        while time.time() < since_s + 6:
            time.sleep(2)
            observation = measurer.observe()
            assert observation is not None
            seen.append(observation)
    assert weighed_s(seen) == pytest.approx(probe.mean_s(since_s), rel=0.15)
    assert all(one.batch_s > 0 for one in seen[-1].components)


@pytest.mark.long
def test_drs_apart_knows_the_latency_of_a_loop_and_settles(tmp_path: Path) -> None:
    probe, steps = Probe(), list[Step]()
    settings = Settings(
        policy="drs", period_s=5.0, executors_min=1, executors_max=8, slots=1, key_groups=2,
        aim=1.0, history=str(tmp_path / "h.db"),
    )  # fmt: skip
    place = Place("local[8]", tmp_path / "checkpoint", tmp_path / "log", apart=True)
    with ElasticRun(going_round(probe, wait_s=0.004), settings, place, steps.append) as run:
        assert not run.wait(240)
        edges = run._controlled().edges
    seen = [step.observation for step in steps if step.observation is not None]
    settled = seen[len(seen) // 2 :]
    since_s = probe.seen[-1][0] - (settled[-1].at_s - settled[0].at_s)
    measured_s = weighed_s(settled)
    print(f"measured {measured_s:.2f} s, probe {probe.mean_s(since_s):.2f} s")
    assert measured_s == pytest.approx(probe.mean_s(since_s), rel=0.1)
    assert _stays(steps)
    runs = {one.name: one.parallelism for one in seen[-1].components}
    plan = ScalingPlan(runs, sum(runs.values()))
    context = ScalingContext(tuple(seen[-30:]), plan, Limits(1, 8, 20.0), edges, "space")
    inputs = read_inputs(context, "hops", Drs().smoothing, BatchOverhead(0.25), 0.0, False)
    assert inputs is not None
    print(f"hops, not corrected, {inputs.expected_s:.2f} s")
    assert inputs.expected_s == pytest.approx(measured_s, rel=0.5)


@pytest.mark.long
def test_the_pattern_topology_settles_under_drs_and_stays(tmp_path: Path) -> None:
    topology = frequent_patterns(
        constant(50.0), Memory(), tweets=Tweets(items=20, window=300), threshold=12,
        max_latency="15s",
    )  # fmt: skip
    steps = list[Step]()
    settings = Settings(
        policy="drs", period_s=5.0, executors_min=1, executors_max=8, slots=1, key_groups=2,
        history=str(tmp_path / "h.db"),
    )  # fmt: skip
    place = Place("local[8]", tmp_path / "checkpoint", tmp_path / "log", apart=True)
    with ElasticRun(topology, settings, place, steps.append) as run:
        assert not run.wait(240)
    assert _stays(steps)


def _stays(steps: list[Step]) -> bool:
    """Whether nothing changed in the last third of a run."""
    plans = [
        {one.name: one.parallelism for one in step.observation.components}
        for step in steps
        if step.observation is not None
    ]
    last = plans[-len(plans) // 3 :]
    print("plans:", [plan for at, plan in enumerate(plans) if at == 0 or plan != plans[at - 1]])
    return all(plan == last[0] for plan in last)
