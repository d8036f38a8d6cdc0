"""One line for each kind of decision, from a history."""

from dataclasses import replace
from pathlib import Path

from contract.fakes import observation
from penstock.control.actions import Move
from penstock.control.history.digest import digest
from penstock.control.history.store import HistoryStore
from penstock.control.records import AllocationRecord, DecisionRecord, RunRecord
from penstock.model.decision import Decision, RoomDecision, ScalingPlan
from penstock.model.observation import AdmissionRecord, SourceObservation


def admission(number: int, before: int, after: int) -> AdmissionRecord:
    opened = max(0, after - before)
    return AdmissionRecord(
        number, 10.0, "drf-m", 4, before, after, 0, opened, 0, 1, 100.0, (f"why {number}",),
        source="reports",
    )  # fmt: skip


def scaling(before: int, after: int) -> DecisionRecord:
    plan = ScalingPlan({}, after)
    return DecisionRecord(10.0, "drs", ScalingPlan({}, before), Decision(plan, ("late",)), plan)


def test_every_room_is_told_with_its_last_reason(tmp_path: Path) -> None:
    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        run = store.begin(RunRecord("road", "drs", 0.0, 5.0, 5.0))
        decisions = (admission(1, 1, 2), admission(2, 2, 2), admission(3, 2, 3))
        source = SourceObservation("reports", 4, 0, 0, 0, 0, 0, (), decisions, ())
        run.observed(replace(observation(10.0), sources=(source,)))
        run.decided(scaling(2, 2))
        run.decided(scaling(2, 4))
        nothing = AllocationRecord(10.0, "milp", (), 5, 5, 0, 1, 1, reasons=("even",))
        run.allocated(nothing)
        run.allocated(replace(nothing, moves=(Move("speeds", 0, "1"),), reasons=("uneven",)))
        run.room_decided(
            RoomDecision(10.0, "fusion", "plan", "fuse a + b by (k)", {}, ("cheaper",))
        )
        run.room_decided(RoomDecision(11.0, "fusion", "carried out", "fuse a + b by (k)", {}))
        kept = RoomDecision(12.0, "fusion", "plan", "fuse", {"expected_gain": 0.0}, ("plan kept",))
        run.room_decided(kept)
        run.flush()
        rooms = {room.room: room for room in digest(store, run.run_id)}
    assert list(rooms) == ["admission", "fusion", "scaling", "allocation", "routing"]
    assert rooms["admission"].changes == 2
    assert rooms["admission"].line().endswith("lanes of reports 2 -> 3, 0 of 4 streams "
                                             "redirected: why 3")  # fmt: skip
    assert rooms["fusion"].line() == "fusion: once; last: fuse a + b by (k): cheaper"
    assert rooms["scaling"].line() == "scaling: once; last: processors 2 -> 4 (drs): late"
    assert rooms["allocation"].line() == "allocation: once; last: 1 key groups move (milp): uneven"
    assert rooms["routing"].line() == "routing: nothing was changed"
