"""What the loop decides of processors: a policy's suggestion, and what the guards make of it."""

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

from penstock.control.act_costs import ActCosts
from penstock.control.actions import MoveKeyGroups, SetExecutors
from penstock.control.controlled import Controlled
from penstock.control.guards.guard import GuardContext, apply_guards
from penstock.control.ports import Actuator
from penstock.control.records import DecisionRecord
from penstock.control.rooms import Rooms
from penstock.model.decision import Limits, RoomDecision, ScalingPlan
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

    def __init__(self, controlled: Controlled, rooms: Rooms, window: int) -> None:
        self._controlled, self._guards, self._foresight = (
            controlled,
            tuple(rooms.guards),
            rooms.foresight,
        )
        policies = (rooms.policy, *rooms.shadows)
        wanted = max(getattr(policy, "window_periods", 0) for policy in policies)
        self._window: deque[Observation] = deque(maxlen=max(window, wanted))
        slots = controlled.actuator.slots_per_executor()
        self._costs = ActCosts(slots, rooms.policy.name)
        self.paid: tuple[RoomDecision, ...] = ()  # for acts that the newest observation ended
        self._schedule = rooms.schedule
        self._suggested: deque[tuple[float, int]] = deque(maxlen=MOST_REMEMBERED)
        self._used: deque[tuple[float, float]] = deque(maxlen=MOST_REMEMBERED)
        self.parallelism: dict[str, int] = dict(controlled.parallelism)  # as last given
        self._last_act_at_s: float | None = None
        self._foreseen_per_s = math.nan  # at the horizon; anew with each observation

    @property
    def divides(self) -> bool:
        """Whether components have processors of their own, so that an executor may be shared."""
        return self._controlled.sharing == "space"

    @property
    def newest(self) -> Observation:
        """The last observation."""
        return self._window[-1]

    def saw(self, observation: Observation) -> None:
        """Keep an observation to decide on, and look ahead from it."""
        self._window.append(observation)
        self.paid = self._costs.saw(observation)
        if self._foresight is not None:
            self._foreseen_per_s = self._foresight.rate_per_s(tuple(self._window))

    def asked(self, at_s: float, before: int, processors: int) -> None:
        """So many processors were asked for, where there were some before."""
        self._costs.asked(at_s, before, processors)

    def acted(self, at_s: float, parallelism: Mapping[str, int] | None = None) -> None:
        """Something was changed; components have this parallelism now."""
        self._last_act_at_s = at_s
        if parallelism is not None:
            self.parallelism = dict(parallelism)

    def decide(
        self,
        at_s: float,
        cluster: Cluster,
        policy: ScalingPolicy,
        dry_run: bool,
        shadow: bool = False,
    ) -> DecisionRecord:
        """What a policy suggests and what may be done of it."""
        controlled, current = self._controlled, self._current(cluster)
        limits = self._limits(at_s, cluster.slots)
        foreseen = self._foreseen_per_s if math.isfinite(self._foreseen_per_s) else None
        asked = ScalingContext(
            self._shown_to(policy),
            current,
            limits,
            controlled.edges,
            controlled.sharing,
            act_price=self._costs.expected,
            changed_at_s=self._last_act_at_s,
        )
        decision = policy.decide(asked)
        # Whole executors first, so that guards do not argue about a part of one.
        slots = 1 if self.divides else cluster.slots
        whole = -(-decision.plan.processors // slots) * slots
        if not shadow:
            self._suggested.append((at_s, whole))
            self._used.append((at_s, current.processors * self.newest.period_s))
        suggested = ScalingPlan(decision.plan.parallelism, whole)
        guarded = apply_guards(
            self._guards,
            suggested,
            GuardContext(
                at_s,
                current,
                limits,
                self.newest,
                self._last_act_at_s,
                controlled.sharing,
                tuple(self._suggested),
                tuple(self._used),
            ),
        )
        plan = guarded.plan
        if self.divides and plan.processors not in (current.processors, suggested.processors):
            plan = _split_of(policy, asked, plan)
        return DecisionRecord(
            at_s, policy.name, current, decision, plan, guarded.reasons, dry_run, shadow, foreseen
        )

    def _limits(self, at_s: float, slots: int) -> Limits:
        """Those of the run, narrowed by its schedule until executors asked for now would serve.

        What is to be there by then comes before a limit that ends until then.
        """
        limits = self._controlled.limits
        if self._schedule is None:
            return limits
        ahead_s = self._costs.expected.expected_start_up_s + self.newest.period_s
        least, most = self._schedule.between(at_s, at_s + ahead_s)
        low = max(limits.min_processors, (least or 0) * slots)
        low = min(low, limits.max_processors)
        high = limits.max_processors if most is None else min(limits.max_processors, most * slots)
        return replace(limits, min_processors=low, max_processors=max(low, high))

    def _shown_to(self, policy: ScalingPolicy) -> tuple[Observation, ...]:
        window = tuple(self._window)
        if self._foresight is None or policy.looks_ahead:
            return window
        return self._foresight.shown(window, self._foreseen_per_s)

    def _current(self, cluster: Cluster) -> ScalingPlan:
        """What runs: with processors of their own, what components were given, used or not."""
        measured = {c.name: c.parallelism for c in self.newest.components}
        if self.divides:
            given = {**measured, **self.parallelism}
            return ScalingPlan(given, sum(given.values()))
        # As measured; what was last decided where it was not measured yet.
        return ScalingPlan({**self.parallelism, **measured}, cluster.executors * cluster.slots)


def _split_of(policy: ScalingPolicy, asked: ScalingContext, plan: ScalingPlan) -> ScalingPlan:
    """How the policy would split a total that guards allow; the plan where it does not say."""
    limits = replace(
        asked.limits, min_processors=plan.processors, max_processors=plan.processors
    )  # fmt: skip
    split = policy.decide(replace(asked, limits=limits)).plan
    whole = split.processors == plan.processors == sum(split.parallelism.values())
    return split if whole and split.parallelism.keys() == plan.parallelism.keys() else plan
