"""A hand-written fake for each port of the loop, and observations to feed them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.control.actions import Action, Outcome, SetExecutors
from penstock.control.records import ActionRecord, AllocationRecord, DecisionRecord, FailureRecord
from penstock.model.decision import Decision, RoomDecision, ScalingPlan
from penstock.model.observation import (
    BatchObservation,
    ComponentObservation,
    KeyGroups,
    LatencyObservation,
    NodeObservation,
    Observation,
    OperatorObservation,
    SinkObservation,
    StateObservation,
)
from penstock.scaling.policies.policy import ScalingContext


class FakeClock:
    """Time that passes only when waited for."""

    def __init__(self, start_s: float = 1000.0) -> None:
        self.time_s = start_s
        self.waits_s: list[float] = []
        self.stopped = False
        self.stop_after_waits: int | None = None

    def now_s(self) -> float:
        return self.time_s

    def wait_s(self, seconds: float) -> bool:
        if self.stop_after_waits is not None and len(self.waits_s) >= self.stop_after_waits:
            self.stopped = True
        if self.stopped:
            return False
        self.waits_s.append(seconds)
        self.time_s += max(0.0, seconds)
        return True

    def stop(self) -> None:
        self.stopped = True


class FakeMeasurer:
    """Hands out prepared observations, None or exceptions, one a call; None when they are out."""

    def __init__(self, answers: Iterable[Observation | Exception | None] = ()) -> None:
        self.answers = list(answers)

    def observe(self) -> Observation | None:
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer


@dataclass
class FakeActuator:
    """A cluster that obeys at once, unless told otherwise."""

    total: int = 1
    slots: int = 1
    cannot: Mapping[str, str] = field(default_factory=dict)
    fail_with: Exception | str | None = None
    acted: list[Action] = field(default_factory=list)

    def unavailable(self) -> Mapping[str, str]:
        return self.cannot

    def executors(self) -> int:
        return self.total

    def slots_per_executor(self) -> int:
        return self.slots

    def act(self, action: Action) -> Outcome:
        self.acted.append(action)
        if isinstance(self.fail_with, Exception):
            raise self.fail_with
        if self.fail_with is not None:
            return Outcome(action, done=False, detail=self.fail_with)
        if action.NAME in self.cannot:
            return Outcome(action, done=False, detail=self.cannot[action.NAME])
        if isinstance(action, SetExecutors):
            self.total = action.total
        return Outcome(action, done=True, detail="as asked", took_s=0.5)


@dataclass
class FakeHistory:
    """Keeps everything in lists; readers see what was flushed."""

    observations: list[Observation] = field(default_factory=list)
    decisions: list[DecisionRecord] = field(default_factory=list)
    allocations: list[AllocationRecord] = field(default_factory=list)
    actions: list[ActionRecord] = field(default_factory=list)
    failures: list[FailureRecord] = field(default_factory=list)
    elsewhere: list[RoomDecision] = field(default_factory=list)
    fail_with: Exception | None = None
    _waiting: list[tuple[list[Any], Any]] = field(default_factory=list)

    def observed(self, observation: Observation) -> None:
        self._keep(self.observations, observation)

    def decided(self, record: DecisionRecord) -> None:
        self._keep(self.decisions, record)

    def allocated(self, record: AllocationRecord) -> None:
        self._keep(self.allocations, record)

    def room_decided(self, decision: RoomDecision) -> None:
        self._keep(self.elsewhere, decision)

    def acted(self, record: ActionRecord) -> None:
        self._keep(self.actions, record)

    def failed(self, record: FailureRecord) -> None:
        self._keep(self.failures, record)

    def flush(self) -> None:
        for kept, record in self._waiting:
            kept.append(record)
        self._waiting.clear()

    def _keep(self, kept: list[Any], record: Any) -> None:
        if self.fail_with is not None:
            raise self.fail_with
        self._waiting.append((kept, record))


class FakePolicy:
    """Asks for prepared numbers of processors, one a call; the last one from then on."""

    name = "fake"
    looks_ahead = False

    def __init__(self, *wanted: int | Exception) -> None:
        self.wanted = list(wanted)
        self.contexts: list[ScalingContext] = []

    def decide(self, context: ScalingContext) -> Decision[ScalingPlan]:
        self.contexts.append(context)
        wanted = self.wanted.pop(0) if len(self.wanted) > 1 else self.wanted[0]
        if isinstance(wanted, Exception):
            raise wanted
        return Decision(ScalingPlan(context.current.parallelism, wanted), (f"wants {wanted}",))


def observation(at_s: float = 1000.0, **changes: Any) -> Observation:
    """A small healthy observation."""
    values: dict[str, Any] = {"period_s": 5.0, "arrival_rate_per_s": 100.0, "backlog_rows": 10.0}
    return Observation(at_s=at_s, **(values | changes))


def rich_observation(at_s: float = 1000.0) -> Observation:
    """One that uses every field, with the awkward values: NaN, infinity, unicode, tiny, huge."""
    nan, inf = float("nan"), float("inf")
    groups = KeyGroups(
        load_s=np.array([0.1, nan, 1e-300, inf]),
        state_bytes=np.array([nan, 0.0, 2.0**53, 1.0]),
        node=np.array(["n1", "", "nœud", "n1"], dtype=np.str_),
    )
    return Observation(
        at_s=at_s,
        period_s=4.999999999999999,
        arrival_rate_per_s=0.1 + 0.2,
        rate_age_s=1 / 3,
        part_of_cluster=True,
        backlog_rows=nan,
        operators=(OperatorObservation("b", 1 / 3, nan), OperatorObservation("a", 0.0, inf)),
        components=(
            ComponentObservation(
                "z", ("b", "a"), 1e17, nan, 3, 2.5, 7.0, 0.5, inf, groups, tasks=6
            ),
            ComponentObservation("y", (), 0.0, 1e-9, 1, 0.0),
        ),
        nodes=(NodeObservation("n1", 2, 1.5), NodeObservation("nœud", 2, nan, draining=True)),
        latency=LatencyObservation(10, 0.7, nan, 2.5, 0.95, 2.4),
        sinks=(
            SinkObservation("out", 3.0, LatencyObservation(10, 0.7, nan, 2.5, 0.95, 0.1 + 0.2)),
            SinkObservation("old", 3.0, LatencyObservation(10, 0.7, 1.5, 2.5, 0.95)),
        ),
        batches=BatchObservation(2, 1.25, 0.25, 1e6),
        missing=("latency p95", "state 'size'"),
        state=(StateObservation("orders/window", groups),),
    )


def wait_until(condition: Callable[[], bool], limit_s: float = 120.0) -> bool:
    """Whether a condition of the real world came true within the limit."""
    import threading
    import time

    end_s = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end_s:
            return False
        threading.Event().wait(0.01)
    return True
