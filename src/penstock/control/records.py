"""What a history keeps of each period beside the observation; written and read in the same form."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from penstock.control.actions import Move, Outcome
from penstock.model.decision import Decision, ScalingPlan

TRAINING = "training"  # the policy of runs that were simulated so that another one learns


@dataclass(frozen=True)
class RunRecord:
    """One run of a topology under the loop."""

    topology: str
    policy: str
    started_at_s: float
    period_s: float
    max_latency_s: float
    slots_per_executor: int = 1
    dry_run: bool = False
    ended_at_s: float | None = None
    executors_min: int = 1
    executors_max: int = 1
    batch_interval_s: float = 0.0  # zero: back to back
    foresight_s: float = 0.0  # how far ahead of a decision its foreseen rate is
    edges: tuple[tuple[str, str], ...] = ()  # of sources, operators and sinks, upstream first
    share: float | None = None  # of the results that must keep the bound; None: not recorded


@dataclass(frozen=True)
class DecisionRecord:
    """What a policy suggested, what the guards made of it, and why.

    A shadow only watches: its decision is never carried out, whatever `dry_run` says.
    """

    at_s: float
    policy: str
    current: ScalingPlan
    decision: Decision[ScalingPlan]
    guarded: ScalingPlan
    guard_reasons: tuple[str, ...] = ()
    dry_run: bool = False
    shadow: bool = False
    foreseen_rate_per_s: float | None = None  # None where nothing was foreseen

    @property
    def numbers(self) -> Mapping[str, float]:
        """Of the forecast that the policy made itself."""
        return self.decision.numbers


@dataclass(frozen=True)
class AllocationRecord:
    """Where key groups should live, what has to move for it, and why.

    Load distances are in points of one processor. A collocation is the share of the bytes between
    key groups that stay on their node; NaN where there are none.
    """

    at_s: float
    policy: str
    moves: tuple[Move, ...]
    load_distance: float  # as measured, before the moves
    planned_distance: float
    bound: float  # below which no placement within the budget can come
    collocation: float
    planned_collocation: float
    leaving: tuple[str, ...] = ()  # nodes being emptied
    left_on_leaving: int = 0  # key groups that stay on them after the moves
    holds_scaling: str | None = None  # why executors need not be added yet
    reasons: tuple[str, ...] = ()
    infeasible: str | None = None
    dry_run: bool = False

    def put_off(self, because: str) -> "AllocationRecord":
        """The same without its moves, which are planned again in the next period."""
        if not self.moves:
            return self
        line = f"{len(self.moves)} moves wait: {because}"
        return replace(self, moves=(), reasons=(line, *self.reasons))


@dataclass(frozen=True)
class ActionRecord:
    """What was done and what it cost."""

    at_s: float
    outcome: Outcome


@dataclass(frozen=True)
class FailureRecord:
    """A stage of the loop that failed in a period; the loop went on."""

    at_s: float
    stage: str
    message: str
