"""What each room decided in a run: how often something changed, and why it did the last time."""

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.control.history.store import HistoryStore
from penstock.control.records import AllocationRecord, DecisionRecord
from penstock.model.decision import RoomDecision
from penstock.model.observation import AdmissionRecord

ROOMS = ("admission", "fusion", "scaling", "allocation", "routing")


@dataclass(frozen=True)
class RoomDigest:
    """One kind of decision."""

    room: str
    changes: int
    last_what: str = ""
    last_reason: str = ""

    def line(self) -> str:
        """For a person."""
        if not self.changes:
            return f"{self.room}: nothing was changed"
        times = "once" if self.changes == 1 else f"{self.changes} times"
        return f"{self.room}: {times}; last: {self.last_what}: {self.last_reason}"


def digest(store: HistoryStore, run: int) -> tuple[RoomDigest, ...]:
    """All five rooms, in the order of the loop; other rooms that decided follow."""
    changes: dict[str, list[tuple[str, tuple[str, ...]]]] = {room: [] for room in ROOMS}
    for record in filter(admission_changes, store.read_admissions(run)):
        changes["admission"].append((admission_text(record), record.reasons))
    for decision in filter(scaling_changes, store.read_decisions(run)):
        reasons = (*decision.decision.reasons, *decision.guard_reasons)
        changes["scaling"].append((scaling_text(decision), reasons))
    for allocation in store.read_allocations(run):
        if allocation.moves:
            changes["allocation"].append((allocation_text(allocation), allocation.reasons))
    for elsewhere in filter(room_changes, store.read_room_decisions(run)):
        changes.setdefault(elsewhere.room, []).append((elsewhere.what, elsewhere.reasons))
    return tuple(_digest(room, found) for room, found in changes.items())


def admission_changes(record: AdmissionRecord) -> bool:
    """Whether streams were redirected or lanes opened or left."""
    return bool(record.redirected or record.opened or record.retired or record.infeasible)


def scaling_changes(decision: DecisionRecord) -> bool:
    """Whether another number of processors was to be had, and may have been."""
    return decision.guarded.processors != decision.current.processors


def room_changes(decision: RoomDecision) -> bool:
    """Whether something was decided anew: not that a plan is kept or taken up, nor its price."""
    is_price = "measured_rows" in decision.numbers
    return bool(decision.reasons) and not is_price and decision.numbers.get("expected_gain") != 0


def admission_text(record: AdmissionRecord) -> str:
    """What changed, in a few words."""
    lanes = f"lanes of {record.source} {record.lanes_before} -> {record.lanes_after}"
    return f"{lanes}, {record.redirected} of {record.streams} streams redirected"


def scaling_text(decision: DecisionRecord) -> str:
    """What changed, in a few words."""
    before, after = decision.current.processors, decision.guarded.processors
    return f"processors {before} -> {after} ({decision.policy})"


def allocation_text(record: AllocationRecord) -> str:
    """What changed, in a few words."""
    return f"{len(record.moves)} key groups move ({record.policy})"


def _digest(room: str, found: Iterable[tuple[str, tuple[str, ...]]]) -> RoomDigest:
    changes = list(found)
    if not changes:
        return RoomDigest(room, 0)
    what, reasons = changes[-1]
    return RoomDigest(room, len(changes), what, reasons[0] if reasons else "no reason was given")
