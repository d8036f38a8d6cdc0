"""What happened in one period of the loop, as data and as one line for a person."""

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from penstock.control.actions import Outcome
from penstock.control.records import AllocationRecord, DecisionRecord, FailureRecord
from penstock.model.decision import RoomDecision
from penstock.model.observation import Observation


@dataclass(frozen=True)
class Step:
    """One period: what was seen, what was decided, what was done, what failed."""

    at_s: float
    observation: Observation | None = None
    decision: DecisionRecord | None = None
    executors_before: int | None = None
    executors_wanted: int | None = None
    outcome: Outcome | None = None
    divided: Outcome | None = None  # processors handed to components of their own
    held_because: str | None = None  # why a wanted change was not carried out
    failures: tuple[FailureRecord, ...] = ()
    allocation: AllocationRecord | None = None
    moved: Outcome | None = None  # what came of its moves
    room_decisions: tuple[RoomDecision, ...] = ()  # the last resort, the interval
    room_outcomes: tuple[Outcome, ...] = ()  # what came of those
    paid: tuple[RoomDecision, ...] = ()  # what acts of earlier periods really cost

    @property
    def carried_out(self) -> bool:
        """Whether anything was changed."""
        return any(o is not None and o.done for o in (self.outcome, self.divided))

    @property
    def changes(self) -> bool:
        """Whether other executors, another division of them or other homes were wanted."""
        moves = self.allocation is not None and bool(self.allocation.moves)
        more = self.executors_wanted != self.executors_before
        return more or self.divided is not None or moves or bool(self.room_decisions)

    def line(self, zone: tzinfo | None = None) -> str:
        """The decision in one line; the time is local unless a zone is given."""
        time = clock_time(self.at_s, zone)
        if self.decision is None:
            return f"{time} no decision: {self._why_none()}"
        what = (
            f"executors {self.executors_before} -> {self.executors_wanted}"
            if self.executors_wanted != self.executors_before
            else f"executors stay {self.executors_before}"
        )
        if self.divided is not None:
            what += f", {self.divided.action}"
        reasons = "; ".join(self._reasons(self.decision))
        said = f"{time} {what} ({self.decision.policy}): {reasons}{self._moves()}"
        return said + "".join(f" | {one}" for one in self._others())

    def _others(self) -> list[str]:
        """What else was decided, and whether it was done."""
        said = []
        for decision in self.room_decisions:
            reasons = [*decision.reasons, *([decision.infeasible] if decision.infeasible else [])]
            said.append(f"{decision.what} ({decision.policy}): {'; '.join(reasons)}")
        said += [f"{o.action}: not done: {o.detail}" for o in self.room_outcomes if not o.done]
        return said

    def _moves(self) -> str:
        """What moved and why, behind the decision on executors."""
        record = self.allocation
        if record is None or not (record.moves or record.infeasible):
            return ""
        said = list(record.reasons[:1])
        if record.infeasible:
            said.append(f"infeasible: {record.infeasible}")
        if self.moved is not None:
            said.append(self.moved.detail)
        return f" | {len(record.moves)} key groups move ({record.policy}): {'; '.join(said)}"

    def _why_none(self) -> str:
        if self.failures:
            return "; ".join(f"{f.stage} failed: {f.message}" for f in self.failures)
        return "nothing was observed"

    def _reasons(self, record: DecisionRecord) -> list[str]:
        reasons = [*record.decision.reasons, *record.guard_reasons]
        if record.decision.infeasible:
            reasons.append(f"infeasible: {record.decision.infeasible}")
        if self.held_because and self.held_because not in reasons:
            reasons.append(self.held_because)
        reasons += [
            f"not done: {outcome.detail}"
            for outcome in (self.outcome, self.divided)
            if outcome is not None and not outcome.done
        ]
        reasons += [f"{f.stage} failed: {f.message}" for f in self.failures]
        return reasons or ["nothing to change"]


def clock_time(at_s: float, zone: tzinfo | None = None) -> str:
    """The time of day of a moment, local unless a zone is given."""
    return datetime.fromtimestamp(at_s, tz=UTC).astimezone(zone).strftime("%H:%M:%S")
