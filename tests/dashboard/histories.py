"""Histories to show: written by the same code that a run uses."""

from pathlib import Path

import numpy as np

from contract.fakes import observation
from penstock.control.actions import Move, Outcome, SetExecutors
from penstock.control.history.store import HistoryStore, RunHistory
from penstock.control.records import (
    ActionRecord,
    AllocationRecord,
    DecisionRecord,
    FailureRecord,
    RunRecord,
)
from penstock.model.decision import Decision, RoomDecision, ScalingPlan
from penstock.model.observation import (
    AdmissionRecord,
    BatchObservation,
    ComponentObservation,
    KeyGroups,
    LaneObservation,
    LatencyObservation,
    NodeObservation,
    Observation,
    SourceObservation,
)

START_S = 1_750_000_000.0
MARKUP = "<img src=x onerror=alert(1)><b>bold</b>"
RUN = RunRecord(
    "road", "incremental", START_S, 5.0, 2.0, slots_per_executor=2, executors_min=1,
    executors_max=4, foresight_s=10.0, edges=(("reports", "speeds"), ("speeds", MARKUP)),
    share=0.99,
)  # fmt: skip


def period(number: int, homes: tuple[str, ...] = ("1", "2", "1")) -> Observation:
    """A period whose figures all differ, so that a mix-up is seen."""
    groups = KeyGroups(
        np.array([0.5, 1.25, 0.125]), np.array([100.0, 2e6, np.nan]), np.array(homes)
    )
    return observation(
        START_S + 5 * number,
        arrival_rate_per_s=100.5 + number,
        backlog_rows=10.0 * number,
        components=(
            ComponentObservation(
                "speeds", ("speeds",), 99.5 + number, 0.0125, 4, 3.5, key_groups=groups, tasks=3
            ),
            ComponentObservation(MARKUP, (MARKUP,), 7.0, 0.001, 4, 0.25),
        ),
        nodes=(NodeObservation("1", 2, 4.0), NodeObservation("2", 2, 1.0, draining=True)),
        latency=LatencyObservation(
            100, 0.7 + number / 8, 1.5 + number / 8, 2.5 + number, 0.96, 1.75 + number / 8
        ),
        batches=BatchObservation(4, 1.1, 0.9, 120.0),
        sources=(
            SourceObservation(
                "reports", 7, 0, 0, 12, 0, 3, (LaneObservation("lane-0", 7, 12, 95.5),),
                (AdmissionRecord(number, START_S + 5 * number, "drf", 7, 1, 2, 3, 1, 0, 1, 95.5,
                                 ("lane-0 is full",), source="reports"),),
                (MARKUP,),
            ),
        ),
        decided=(
            RoomDecision(
                START_S + 5 * number, "routing", "osg", "reports: routes by table 7",
                {"load ratio": 0.25}, ("key 7 is split",),
            ),
        ),
    )  # fmt: skip


def decision(number: int, shadow: bool = False) -> DecisionRecord:
    plan = ScalingPlan({"speeds": 2}, 2)
    wanted = ScalingPlan({"speeds": 6}, 6)
    guarded = ScalingPlan({"speeds": 4}, 4)
    return DecisionRecord(
        START_S + 5 * number, "ds2" if shadow else "incremental", plan,
        Decision(wanted, (f"load 0.9 is above 0.8 {MARKUP}",), "needs 9 processors"), guarded,
        ("step: 2 -> 6 processors cut to 2 -> 4",), shadow=shadow, foreseen_rate_per_s=123.25,
    )  # fmt: skip


def allocation(number: int) -> AllocationRecord:
    move = Move("speeds", 1, "2")
    return AllocationRecord(
        START_S + 5 * number, "milp", (move,), 12.5, 3.25, 1.0, float("nan"), float("nan"),
        reasons=("speeds: group 1 is the busiest",),
    )  # fmt: skip


def write(run: RunHistory, number: int, homes: tuple[str, ...] = ("1", "2", "1")) -> None:
    """One period as the loop writes it."""
    run.observed(period(number, homes))
    run.decided(decision(number, shadow=True))
    run.decided(decision(number))
    run.allocated(allocation(number))
    run.acted(ActionRecord(START_S + 5 * number, Outcome(SetExecutors(2), True, MARKUP, 0.5)))
    run.failed(FailureRecord(START_S + 5 * number, "view", f"ValueError: {MARKUP}"))
    run.flush()


def make(folder: Path, periods: int = 3) -> tuple[HistoryStore, RunHistory]:
    """A history with one run that still goes on."""
    store = HistoryStore(str(folder / "h.sqlite"))
    run = store.begin(RUN)
    for number in range(1, periods + 1):
        write(run, number)
    return store, run
