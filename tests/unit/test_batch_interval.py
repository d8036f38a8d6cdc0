"""The interval of batches: as long as the bound allows where that saves batches, else none."""

from dataclasses import replace

import pytest

from contract.fakes import FakeActuator, FakeHistory, FakeMeasurer, FakePolicy
from contract.loops import loop_over
from penstock.control.actions import SetInterval
from penstock.control.batch_interval import BatchInterval
from penstock.model.decision import Limits
from penstock.model.observation import (
    BatchObservation,
    ComponentObservation,
    LatencyObservation,
    NodeObservation,
    Observation,
)
from penstock.scaling.batch_interval import decide_interval


def seen(load: float = 0.4, overhead_s: float = 0.5, share: float = 1.0) -> Observation:
    return Observation(
        1000.0, 5.0, 100.0, 10.0,
        components=(ComponentObservation("c", (), 100.0, load / 100, 2, 1.0),),
        nodes=(NodeObservation("n", 2, 1.0),),
        latency=LatencyObservation(500, 0.9, 1.2, 1.5, share),
        batches=BatchObservation(8, 0.6, overhead_s, 60),
    )  # fmt: skip


@pytest.mark.parametrize(("load", "overhead_s"), [(0.0, 0.2), (0.4, 0.5), (0.9, 0.3)])
def test_an_interval_keeps_most_of_the_bound(load: float, overhead_s: float) -> None:
    interval_s = decide_interval(0.0, seen(load, overhead_s), 5.0).plan
    slowest_s = 0.95 * interval_s + overhead_s + interval_s * load / 2
    assert 2.8 < slowest_s <= 3.0  # of 60% of 5 s
    assert interval_s > overhead_s / (1 - load / 2)


def test_a_tight_bound_or_a_high_load_goes_back_to_back() -> None:
    assert decide_interval(0.0, seen(), 1.0).plan == 0
    assert decide_interval(0.0, seen(load=1.1), 5.0).plan == 0
    assert decide_interval(1.9, seen(1.1, overhead_s=0.3), 5.0).plan > 0, (
        "once begun, it bears more"
    )
    said = decide_interval(2.0, seen(load=1.8), 5.0)
    assert said.plan == 0
    assert "back to back" in said.reasons[0]


def test_a_missed_bound_ends_it_at_once_and_small_changes_are_not_made() -> None:
    assert decide_interval(2.0, seen(share=0.9), 5.0).plan == 0
    assert decide_interval(2.0, replace(seen(), backlog_rows=900.0), 5.0).plan == 0
    chosen = decide_interval(0.0, seen(), 5.0).plan
    assert decide_interval(chosen, seen(load=0.5), 5.0).plan == chosen
    assert decide_interval(chosen, replace(seen(), batches=None), 5.0).plan == chosen


def test_the_loop_carries_it_out_and_remembers_why() -> None:
    actuator, history = FakeActuator(total=1, slots=2), FakeHistory()
    loop = loop_over(
        FakeMeasurer([seen(), seen()]), actuator, policy=FakePolicy(2), history=history,
        limits=Limits(1, 4, 5.0), batch_interval=BatchInterval(5.0),
    )  # fmt: skip
    loop.step()
    loop.step()
    chosen = decide_interval(0.0, seen(), 5.0)
    assert actuator.acted == [SetInterval(chosen.plan)]
    assert [d.room for d in history.elsewhere] == ["interval"]
    assert history.elsewhere[0].reasons == chosen.reasons
