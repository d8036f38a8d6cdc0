"""The few things the loop needs from the world; spark/ and sim/ each provide them."""

from collections.abc import Mapping
from typing import Protocol

from penstock.control.actions import Action, Outcome
from penstock.control.records import (
    ActionRecord,
    AllocationRecord,
    DecisionRecord,
    FailureRecord,
)
from penstock.model.decision import RoomDecision
from penstock.model.observation import Observation


class Clock(Protocol):
    """Time, real or simulated."""

    def now_s(self) -> float:
        """Seconds since the epoch."""

    def wait_s(self, seconds: float) -> bool:
        """Let time pass; False when the run was stopped meanwhile."""


class Measurer(Protocol):
    """Where observations come from."""

    def observe(self) -> Observation | None:
        """What was measured since the last call; None while there is nothing to say."""


class Actuator(Protocol):
    """What carries actions out."""

    def unavailable(self) -> Mapping[str, str]:
        """Names of actions (as `SetExecutors.NAME`) that cannot be carried out here, and why."""

    def executors(self) -> int:
        """Executors asked for at present, without those being drained."""

    def slots_per_executor(self) -> int:
        """Processors of one executor."""

    def act(self, action: Action) -> Outcome:
        """Carry an action out; a failure is an Outcome that is not done, never an exception."""


class History(Protocol):
    """What is remembered of a run; records may wait in memory until `flush`."""

    def observed(self, observation: Observation) -> None:
        """Keep an observation."""

    def decided(self, record: DecisionRecord) -> None:
        """Keep a decision, what the guards made of it, and why."""

    def allocated(self, record: AllocationRecord) -> None:
        """Keep where key groups should live, and why."""

    def room_decided(self, decision: RoomDecision) -> None:
        """Keep a decision of another room than scaling and placement."""

    def acted(self, record: ActionRecord) -> None:
        """Keep what was done and what it cost."""

    def failed(self, record: FailureRecord) -> None:
        """Keep that a stage of the loop failed."""

    def flush(self) -> None:
        """Make everything kept so far visible to readers; called once a period."""
