"""What the loop decides of processors: a policy's suggestion, and what the guards make of it."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.control.actions import MoveKeyGroups, SetExecutors
from penstock.control.foresight import Foresight
from penstock.control.guards.basic import Guard, GuardContext, apply_guards
from penstock.control.ports import Actuator
from penstock.control.records import DecisionRecord
from penstock.model.decision import Limits, ScalingPlan
from penstock.model.observation import Observation
from penstock.scaling.policies.policy import ScalingContext, ScalingPolicy

MOST_REMEMBERED = 20_000  # periods that guards may look back on: a day of five seconds each


@dataclass(frozen=True)
class Cluster:
    """What the actuator says of itself in a period."""

    executors: int
    slots: int
    cannot: Mapping[str, str]  # by the name of an action

    @property
    def cannot_scale(self) -> str | None:
        """Why the number of executors cannot be changed."""
        return self.cannot.get(SetExecutors.NAME)

    @property
    def cannot_move(self) -> str | None:
        """Why key groups cannot be moved."""
        return self.cannot.get(MoveKeyGroups.NAME)

    @classmethod
    def seen_by(cls, actuator: Actuator) -> "Cluster":
        """As it is now."""
        return cls(
            actuator.executors(), actuator.slots_per_executor(), actuator.unavailable()
        )  # fmt: skip


class Deciding:
    """Observations, suggestions and acts so far, and decisions made on them."""

    def __init__(
        self,
        limits: Limits,
        guards: Sequence[Guard],
        edges: tuple[tuple[str, str], ...],
        sharing: Literal["time", "space"],
        window: int,
        foresight: Foresight | None,
        divides: bool,
    ) -> None:
        """`divides`: components have processors of their own, so an executor may be shared."""
        self._limits, self._guards, self._foresight = limits, tuple(guards), foresight
        self._edges, self._sharing, self._divides = edges, sharing, divides
        self._window: deque[Observation] = deque(maxlen=window)
        self._suggested: deque[tuple[float, int]] = deque(maxlen=MOST_REMEMBERED)
        self._used: deque[tuple[float, float]] = deque(maxlen=MOST_REMEMBERED)
        self._parallelism: dict[str, int] = {}
        self._last_act_at_s: float | None = None

    @property
    def newest(self) -> Observation:
        """The last observation."""
        return self._window[-1]

    def saw(self, observation: Observation) -> None:
        """Keep an observation to decide on."""
        self._window.append(observation)

    def acted(self, at_s: float, parallelism: dict[str, int] | None = None) -> None:
        """Something was changed; components have this parallelism until it is measured."""
        self._last_act_at_s = at_s
        if parallelism is not None:
            self._parallelism = parallelism

    def decide(
        self,
        at_s: float,
        cluster: Cluster,
        policy: ScalingPolicy,
        dry_run: bool,
        shadow: bool = False,
    ) -> DecisionRecord:
        """What a policy suggests and what may be done of it."""
        current = self._current(cluster)
        window, foreseen = tuple(self._window), None
        if self._foresight is not None:
            rate_per_s = self._foresight.rate_per_s(window)
            foreseen = rate_per_s if math.isfinite(rate_per_s) else None
            window = self._foresight.shown(window, policy.name)
        decision = policy.decide(
            ScalingContext(
                window, current, self._limits, self._edges, self._sharing,
                changed_at_s=self._last_act_at_s,
            )
        )  # fmt: skip
        # Whole executors first, so that guards do not argue about a part of one.
        slots = 1 if self._divides else cluster.slots
        whole = -(-decision.plan.processors // slots) * slots
        if not shadow:
            self._suggested.append((at_s, whole))
            self._used.append((at_s, current.processors * self.newest.period_s))
        guarded = apply_guards(
            self._guards,
            ScalingPlan(decision.plan.parallelism, whole),
            GuardContext(
                at_s, current, self._limits, self.newest, self._last_act_at_s, self._sharing,
                tuple(self._suggested), tuple(self._used),
            ),
        )  # fmt: skip
        return DecisionRecord(
            at_s, policy.name, current, decision, guarded.plan, guarded.reasons, dry_run, shadow,
            foreseen,
        )  # fmt: skip

    def _current(self, cluster: Cluster) -> ScalingPlan:
        """What runs: with processors of their own, what components were given, used or not."""
        # As measured; what was last decided where it was not measured yet.
        measured = {c.name: c.parallelism for c in self.newest.components}
        running = {**self._parallelism, **measured}
        given = sum(running.values()) if self._divides else cluster.executors * cluster.slots
        return ScalingPlan(running, given)
