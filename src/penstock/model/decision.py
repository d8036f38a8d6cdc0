"""Decisions as data: what should be, why, and whether the request can be met at all."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

PlanT = TypeVar("PlanT")


@dataclass(frozen=True)
class Decision(Generic[PlanT]):
    """What a policy answers.

    Each reason is one line for a person: what changes, from what, to what, because of which
    numbers. `infeasible` is a sentence when no plan satisfies the request; `plan` then holds the
    best that can be had.
    """

    plan: PlanT
    reasons: tuple[str, ...] = ()
    infeasible: str | None = None


@dataclass(frozen=True)
class ScalingPlan:
    """Processors for each component, and in all.

    Components that run together share all processors in time, so `processors` is not always the
    sum over `parallelism`.
    """

    parallelism: Mapping[str, int]
    processors: int


@dataclass(frozen=True)
class RoomDecision:
    """A decision that was taken where it is carried out, as it was told afterwards.

    A source's runner makes tables of routes, for one: the loop does not decide that, but it
    remembers it with its own.
    """

    at_s: float
    room: str  # such as routing
    policy: str
    what: str
    numbers: Mapping[str, float]
    reasons: tuple[str, ...] = ()
    infeasible: str | None = None


@dataclass(frozen=True)
class Limits:
    """What a decision may not exceed."""

    min_processors: int
    max_processors: int
    max_latency_s: float
