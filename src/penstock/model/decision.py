"""Decisions as data: what should be, why, and whether the request can be met at all."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from penstock.model.plan_document import PlanChange

PlanT = TypeVar("PlanT")
USUAL_SHARE = 0.99  # of the results within the bound, where nobody says otherwise


@dataclass(frozen=True)
class Decision(Generic[PlanT]):
    """What a policy answers.

    Each reason is one line for a person: what changes, from what, to what, because of which
    numbers. `infeasible` is a sentence when no plan satisfies the request; `plan` then holds the
    best that can be had. `numbers` are those of its forecast, where it makes one; `expected_s` is
    the latency that it expects of each number of processors, for who divides them among several.
    """

    plan: PlanT
    reasons: tuple[str, ...] = ()
    infeasible: str | None = None
    numbers: Mapping[str, float] = field(default_factory=dict)
    expected_s: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ScalingPlan:
    """Processors for each component, and in all.

    Components that run together share all processors in time, so `processors` is not always the
    sum over `parallelism`.
    """

    parallelism: Mapping[str, int]
    processors: int


USUAL_START_UP_S = 20.0  # of an executor, before any was seen to start


@dataclass(frozen=True)
class ActPrice:
    """What a change of executors costs."""

    start_up_s: float | None = None  # until a new one serves; None: none was seen to start
    pause_s: float = 0.0  # by which batches are longer while it happens
    drain_s: float = 0.0  # until one that is given up is gone

    @property
    def expected_start_up_s(self) -> float:
        """As seen, or as usual."""
        return USUAL_START_UP_S if self.start_up_s is None else self.start_up_s

    def executor_seconds(self, before: int, after: int) -> float:
        """Going from the one number of executors to the other: what is paid and does no work.

        >>> ActPrice(15.0, 0.5).executor_seconds(2, 4)
        32.0
        """
        if before == after:
            return 0.0
        more, fewer = max(0, after - before), max(0, before - after)
        waits_s = self.expected_start_up_s * more + self.drain_s * fewer
        return waits_s + self.pause_s * max(before, after)


UNKNOWN_PRICE = ActPrice()


@dataclass(frozen=True)
class RoomDecision:
    """A decision of another room than scaling and placement, for the history.

    A source's runner makes tables of routes, for one: the loop does not decide that, but it
    remembers it with its own. A change of plan is data in `plan`, which is what later starts read;
    `what` is then its text.
    """

    at_s: float
    room: str  # such as routing
    policy: str
    what: str  # for a person
    numbers: Mapping[str, float]
    reasons: tuple[str, ...] = ()
    infeasible: str | None = None
    plan: PlanChange | None = None

    @classmethod
    def of_plan(
        cls, at_s: float, room: str, policy: str, plan: PlanChange, numbers: Mapping[str, float],
        reasons: tuple[str, ...] = (), infeasible: str | None = None,
    ) -> "RoomDecision":  # fmt: skip
        """A decision on a plan, described by its text."""
        return cls(at_s, room, policy, str(plan), numbers, reasons, infeasible, plan)


@dataclass(frozen=True)
class Limits:
    """What a decision may not exceed."""

    min_processors: int
    max_processors: int
    max_latency_s: float
    share: float = USUAL_SHARE  # of the results that must keep it
