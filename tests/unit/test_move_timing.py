"""Key groups move for balance alone only while that hurts nobody."""

from dataclasses import replace

from penstock.control.acting import reason_to_delay_moves
from penstock.control.actions import Move
from penstock.control.records import AllocationRecord, DecisionRecord
from penstock.model.decision import Decision, ScalingPlan
from penstock.model.observation import LatencyObservation, Observation

MOVES = AllocationRecord(
    10.0, "milp", (Move("speeds", 0, "1"),), 20.0, 2.0, 0.0, 1.0, 1.0, reasons=("uneven",)
)


def decided(current: int, wanted: int) -> DecisionRecord:
    plan = ScalingPlan({}, current)
    return DecisionRecord(10.0, "drs", plan, Decision(ScalingPlan({}, wanted)), plan)


def seen(latency_s: float) -> Observation:
    latency = LatencyObservation(100, latency_s, latency_s, latency_s, 1.0)
    return Observation(10.0, 3.0, 100.0, 0.0, latency=latency)


def test_moves_wait_while_processors_are_short_or_results_late() -> None:
    assert reason_to_delay_moves(MOVES, decided(4, 4), seen(2.0), 4.0) is None
    assert reason_to_delay_moves(MOVES, decided(4, 2), seen(2.0), 4.0) is None
    short = reason_to_delay_moves(MOVES, decided(4, 8), seen(2.0), 4.0)
    assert short == "8 processors are wanted and 4 are there, which comes first"
    late = reason_to_delay_moves(MOVES, decided(4, 4), seen(5.0), 4.0)
    assert late is not None
    assert late.startswith("results take 5 s of 4 s")


def test_what_cannot_wait_does_not() -> None:
    for pressing in (
        replace(MOVES, leaving=("2",)),
        replace(MOVES, load_distance=60.0),
        replace(MOVES, holds_scaling="a better placement will do"),
    ):
        assert reason_to_delay_moves(pressing, decided(4, 8), seen(9.0), 4.0) is None


def test_moves_do_not_wait_for_executors_that_cannot_come() -> None:
    for record, latency_s in ((decided(4, 8), 2.0), (decided(4, 4), 9.0)):
        assert reason_to_delay_moves(MOVES, record, seen(latency_s), 4.0) is not None
        assert reason_to_delay_moves(MOVES, record, seen(latency_s), 4.0, can_grow=False) is None
