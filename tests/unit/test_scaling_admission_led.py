"""The policy `admission-led`: eq. 1a and 1b by what the sources foresee."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from contract.fakes import FakeActuator, FakeMeasurer
from contract.gate_world import Clock, World
from contract.loops import loop_over
from penstock.control.actions import SetExecutors
from penstock.model.decision import Limits, ScalingPlan
from penstock.model.observation import (
    ComponentObservation,
    LaneObservation,
    Observation,
    SourceObservation,
)
from penstock.scaling.policies.admission_led import AdmissionLed
from penstock.scaling.policies.policy import ScalingContext
from penstock.scaling.policies.registry import policy
from penstock.spark.sources import gate as gate_module
from penstock.spark.sources.watch import SourceWatch

QUERY_S, MERGE_S = 0.01, 0.02  # of a tuple; half of the tuples have a result to merge


def seen(rate_per_s: float, foreseen_per_s: float | None = None) -> Observation:
    parts = (
        ComponentObservation("query", ("query",), rate_per_s, QUERY_S, 2, rate_per_s * QUERY_S * 5),
        ComponentObservation(
            "merge", ("merge",), rate_per_s / 2, MERGE_S, 2, rate_per_s / 2 * MERGE_S * 5
        ),
    )
    lane = LaneObservation("lane-1", 1, 0, rate_per_s)
    cabs = SourceObservation("cabs", 1, 0, 0, 0, 0, 0, (lane,), (), (), foreseen_per_s, 10.0)
    return Observation(1000.0, 5.0, rate_per_s, 0.0, components=parts, sources=(cabs,))


def planned(*window: Observation, sharing: str = "time", most: int = 100) -> ScalingPlan:
    context = ScalingContext(
        window, ScalingPlan({"query": 2, "merge": 2}, 4), Limits(1, most, 5.0),
        (("query", "merge"),), sharing,  # type: ignore[arg-type]
    )  # fmt: skip
    return AdmissionLed(headroom=0.2).decide(context).plan


@pytest.mark.parametrize(
    ("measured", "foreseen", "planned_for"),
    [(100.0, None, 100.0), (100.0, 1600.0, 1600.0), (400.0, 100.0, 400.0)],
)
def test_it_plans_for_what_is_foreseen_and_never_below_what_comes(
    measured: float, foreseen: float | None, planned_for: float
) -> None:
    newest = seen(measured, foreseen)
    together = planned_for * (QUERY_S + MERGE_S / 2) / 0.8
    assert planned(newest).processors == math.ceil(together)
    apart = planned(newest, sharing="space").parallelism
    query = planned_for * QUERY_S / 0.8
    passed_on_per_s = query / QUERY_S / 2  # by query nodes that are full
    assert apart == {"query": math.ceil(query), "merge": math.ceil(passed_on_per_s * MERGE_S / 0.8)}


def test_what_is_announced_while_nothing_comes_is_planned_by_what_rows_cost_last() -> None:
    quiet = replace(seen(0.0, 1600.0), at_s=1005.0)
    idle = tuple(replace(part, service_time_s=math.nan) for part in quiet.components)
    assert planned(seen(100.0), replace(quiet, components=idle)).processors == 40


def test_more_than_allowed_is_said_to_be_infeasible() -> None:
    context = ScalingContext((seen(100.0, 1600.0),), ScalingPlan({}, 4), Limits(1, 8, 5.0))
    decision = policy("admission-led").decide(context)
    assert decision.plan.processors == 8
    assert decision.infeasible == "the load needs 36 processors, and 8 are allowed (load 32)"


def test_a_stream_that_says_when_it_will_burst_brings_executors_before_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the input: a stream's meta-data, the gate's decision, the loop's plan, the act."""
    clock = Clock()
    monkeypatch.setattr(gate_module, "time", clock)
    world = World(tmp_path, clock, lane_capacity_per_s=1e6, lane_rows=10**6)
    world.shelf.rows = {"steady": 0, "bursts": 0}
    watch, measurer, cluster = SourceWatch(tmp_path), FakeMeasurer(), FakeActuator(total=2)
    loop = loop_over(
        measurer, cluster, policy=AdmissionLed(headroom=0.0), limits=Limits(1, 50, 5.0)
    )

    def period() -> None:
        for _ in range(3):
            world.shelf.rows = {name: rows + 100 for name, rows in world.shelf.rows.items()}
            clock.now_s += 1.0
            world.gate.admit(None, False)
        part = ComponentObservation("query", ("query",), 200.0, QUERY_S, cluster.total, 1.0)
        observed = Observation(
            clock.now_s, 3.0, 200.0, 0.0, components=(part,), sources=watch.observe()
        )
        measurer.answers.append(observed)
        loop.step()

    for _ in range(3):
        period()
    assert cluster.total == 2, "200 rows a second of 10 ms"
    world.declared.write_text('[streams.bursts]\ngreatest_rate = 1900\ntransition = "jump"\n')
    for _ in range(2):
        period()
    assert cluster.total == 20
    assert cluster.acted == [SetExecutors(20)]
