"""The loop: observe, decide, guard, act, remember.

It knows no platform: Spark and the simulator stand behind the same ports. Nothing that fails in it
may reach the query: each stage is caught at the loop's border, told in one line, remembered where
that is possible, and tried again in the next period.
"""

import logging
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeVar

from penstock.control.actions import Action, MoveKeyGroups, Outcome, SetExecutors, SetParallelism
from penstock.control.allocating import Allocating, waits_for
from penstock.control.foresight import Foresight
from penstock.control.guards import Guard, GuardContext, apply_guards, resized
from penstock.control.ports import Actuator, Clock, History, Measurer
from penstock.control.records import (
    ActionRecord,
    AllocationRecord,
    DecisionRecord,
    FailureRecord,
)
from penstock.control.step import Step
from penstock.model.decision import Limits, ScalingPlan
from penstock.model.observation import Observation
from penstock.scaling.policy import ScalingContext, ScalingPolicy

log = logging.getLogger(__name__)

Result = TypeVar("Result")
MOST_REMEMBERED = 20_000  # periods that guards may look back on: a day of five seconds each


@dataclass(frozen=True)
class _Cluster:
    """What the actuator says of itself in a period."""

    executors: int
    slots: int
    cannot_scale: str | None
    cannot_move: str | None


class Loop:
    """Runs a scaling policy against a cluster.

    `edges` and `sharing` are handed to the policy as they are. `on_step` sees every step, for a
    live view; it is a stage like the others and may fail. `shadows` decide on the same
    observations as the policy, and only the history hears of it. `given` is what components that
    run apart begin with; then their processors are carried out too, by SetParallelism.
    """

    def __init__(
        self,
        clock: Clock,
        measurer: Measurer,
        actuator: Actuator,
        history: History,
        policy: ScalingPolicy,
        limits: Limits,
        guards: Sequence[Guard],
        period_s: float,
        dry_run: bool = False,
        window: int = 60,
        edges: tuple[tuple[str, str], ...] = (),
        sharing: Literal["time", "space"] = "time",
        on_step: Callable[[Step], None] | None = None,
        shadows: Sequence[ScalingPolicy] = (),
        foresight: Foresight | None = None,
        allocating: Allocating | None = None,
        given: Mapping[str, int] | None = None,
    ) -> None:
        self._clock, self._measurer, self._actuator = clock, measurer, actuator
        self._history, self._policy, self._limits = history, policy, limits
        self._guards, self._period_s, self._dry_run = tuple(guards), period_s, dry_run
        self._edges, self._sharing, self._on_step = edges, sharing, on_step
        self._shadows, self._foresight = tuple(shadows), foresight
        self._allocating = allocating
        self._divides, self._given = given is not None, dict(given or {})
        self._window: deque[Observation] = deque(maxlen=window)
        self._suggested: deque[tuple[float, int]] = deque(maxlen=MOST_REMEMBERED)
        self._used: deque[tuple[float, float]] = deque(maxlen=MOST_REMEMBERED)
        self._parallelism: dict[str, int] = {}
        self._last_act_at_s: float | None = None
        self._failures: list[FailureRecord] = []

    def run(self, steps: int | None = None) -> None:
        """Step once a period until the clock is stopped, or `steps` times.

        Periods are counted from the start, so they do not drift; one that was overrun is skipped.
        """
        start_s, taken, period = self._clock.now_s(), 0, 0
        while steps is None or taken < steps:
            elapsed_s = self._clock.now_s() - start_s
            period = max(period + 1, int(elapsed_s // self._period_s) + 1)
            # Never longer than a period, should the machine's clock be set back.
            rest_s = min(self._period_s, period * self._period_s - elapsed_s)
            if not self._clock.wait_s(rest_s):
                return
            self.step()
            taken += 1

    def step(self) -> Step:
        """One period; it never raises what a port or the policy raised."""
        self._failures = []
        at_s = self._clock.now_s()
        observation = self._attempt("measurer", self._measurer.observe, at_s)
        if observation is not None:
            self._window.append(observation)
            self._attempt("history", partial(self._history.observed, observation), at_s)
        cluster = self._attempt("actuator", self._look_at_cluster, at_s)
        step = Step(at_s, observation)
        # Without anything new a policy would only repeat its last answer, and repeat its act.
        if observation is not None and cluster is not None:
            deciding = partial(self._decide, at_s, cluster, self._policy)
            record = self._attempt("policy", deciding, at_s)
            self._watch(at_s, cluster)
            if record is not None:
                step = self._carry_out(step, record, cluster)
        return self._remember(step)

    def advise_only(self, on: bool) -> None:
        """From the next period on, decide and remember without acting, or act again."""
        self._dry_run = on

    def look(self) -> Step:
        """A last period that decides nothing: what happened since the one before is remembered."""
        self._failures = []
        at_s = self._clock.now_s()
        observation = self._attempt("measurer", self._measurer.observe, at_s)
        if observation is not None:
            self._attempt("history", lambda: self._history.observed(observation), at_s)
        return self._remember(Step(at_s, observation))

    def _look_at_cluster(self) -> _Cluster:
        return _Cluster(
            self._actuator.executors(),
            self._actuator.slots_per_executor(),
            self._actuator.unavailable().get(SetExecutors.NAME),
            self._actuator.unavailable().get(MoveKeyGroups.NAME),
        )

    def _watch(self, at_s: float, cluster: _Cluster) -> None:
        """What the shadows would do from here; never carried out."""
        for policy in self._shadows:
            deciding = partial(self._decide, at_s, cluster, policy, shadow=True)
            record = self._attempt(f"shadow {policy.name}", deciding, at_s)
            if record is not None:
                self._attempt("history", partial(self._history.decided, record), at_s)

    def _decide(
        self, at_s: float, cluster: _Cluster, policy: ScalingPolicy, shadow: bool = False
    ) -> DecisionRecord:
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
            self._used.append((at_s, current.processors * self._window[-1].period_s))
        guarded = apply_guards(
            self._guards,
            ScalingPlan(decision.plan.parallelism, whole),
            GuardContext(
                at_s, current, self._limits, self._window[-1], self._last_act_at_s, self._sharing,
                tuple(self._suggested), tuple(self._used),
            ),
        )  # fmt: skip
        return DecisionRecord(
            at_s, policy.name, current, decision, guarded.plan, guarded.reasons, self._dry_run,
            shadow, foreseen,
        )  # fmt: skip

    def _current(self, cluster: _Cluster) -> ScalingPlan:
        """What runs: with processors of their own, what components were given, used or not."""
        running = self._current_parallelism()
        given = sum(running.values()) if self._divides else cluster.executors * cluster.slots
        return ScalingPlan(running, given)

    def _current_parallelism(self) -> dict[str, int]:
        """As measured; what was last decided where it was not measured yet."""
        measured = {c.name: c.parallelism for c in self._window[-1].components}
        return {**self._parallelism, **measured}

    def _carry_out(self, step: Step, record: DecisionRecord, cluster: _Cluster) -> Step:
        wanted = executors_for(record.guarded.processors, cluster.slots, self._limits)
        outcome, held = None, None
        divided = self._divide(step.at_s, record, min(wanted, cluster.executors) * cluster.slots)
        allocation = self._attempt("allocation", partial(self._allocate, wanted), step.at_s)
        if allocation is not None and wanted > cluster.executors and not allocation.holds_scaling:
            # One kind of disruptive act in a period, and what adds processors comes first.
            allocation = allocation.put_off("executors are added first")
        moved = self._move(step.at_s, allocation, cluster.cannot_move)
        waits = waits_for(allocation, moved, wanted - cluster.executors)
        if wanted != cluster.executors and waits is not None:
            held = waits
        elif wanted != cluster.executors:
            if self._dry_run:
                held = "dry run: not carried out"
            elif cluster.cannot_scale is not None:
                held = f"advice only: {cluster.cannot_scale}"
            else:
                leaving = allocation.leaving if allocation is not None else ()
                outcome = self._act(step.at_s, SetExecutors(wanted, leaving))
        if outcome is not None and outcome.done:
            self._last_act_at_s = self._clock.now_s()  # an act may take longer than a period
            self._parallelism = dict(
                resized(record.guarded, wanted * cluster.slots, self._sharing).parallelism
            )
            # What newly started executors hold is handed out once they are there.
            divided = self._divide(step.at_s, record, wanted * cluster.slots) or divided
        return replace(
            step,
            divided=divided,
            decision=record,
            executors_before=cluster.executors,
            executors_wanted=wanted,
            outcome=outcome,
            held_because=held,
            allocation=allocation,
            moved=moved,
        )

    def _allocate(self, wanted: int) -> AllocationRecord | None:
        if self._allocating is None:
            return None
        return self._allocating.plan(self._window[-1], wanted, self._dry_run)

    def _move(
        self, at_s: float, record: AllocationRecord | None, cannot_move: str | None
    ) -> Outcome | None:
        if self._allocating is None or record is None or not record.moves or self._dry_run:
            return None
        if cannot_move is not None:
            log.debug("key groups stay: %s", cannot_move)
            return None
        outcome = self._act(at_s, MoveKeyGroups(record.moves))
        self._allocating.learn(outcome)
        return outcome

    def _divide(self, at_s: float, record: DecisionRecord, slots: int) -> Outcome | None:
        """Give components their processors, within the slots there are; None if they have them."""
        if not self._divides or self._dry_run:
            return None
        plan = resized(record.guarded, slots, self._sharing).parallelism
        wanted = {name: count for name, count in plan.items() if count}
        if wanted == {name: self._given.get(name) for name in wanted}:
            return None
        outcome = self._act(at_s, SetParallelism(wanted))
        if outcome.done:
            self._given = wanted
            self._last_act_at_s = self._clock.now_s()
        return outcome

    def _act(self, at_s: float, action: Action) -> Outcome:
        outcome = self._attempt("actuator", partial(self._actuator.act, action), at_s)
        return outcome or Outcome(action, done=False, detail=self._failures[-1].message)

    def _remember(self, step: Step) -> Step:
        """Write the period in one go; a history that fails must not keep the loop from acting."""
        record = step.decision
        if record is not None:
            self._attempt("history", partial(self._history.decided, record), step.at_s)
        if step.allocation is not None:
            allocated = partial(self._history.allocated, step.allocation)
            self._attempt("history", allocated, step.at_s)
        for outcome in (step.moved, step.outcome, step.divided):
            if outcome is None:
                continue
            acted = ActionRecord(step.at_s, outcome)
            self._attempt("history", partial(self._history.acted, acted), step.at_s)
        for failure in tuple(self._failures):
            self._attempt("history", partial(self._history.failed, failure), step.at_s)
        self._attempt("history", self._history.flush, step.at_s)
        step = replace(step, failures=tuple(self._failures))
        log.log(logging.INFO if step.changes else logging.DEBUG, "%s", step.line())
        if self._on_step is not None:
            self._attempt("view", partial(self._on_step, step), step.at_s)
        return step

    def _attempt(self, stage: str, call: Callable[[], Result], at_s: float) -> Result | None:
        """The border: the query must outlive any fault of a port or a policy, whatever its type."""
        try:
            return call()
        except Exception as error:  # noqa: BLE001
            message = " ".join(f"{type(error).__name__}: {error}".split())
            self._failures.append(FailureRecord(at_s, stage, message))
            log.warning("%s failed, going on: %s", stage, message)
            return None


def executors_for(processors: int, slots_per_executor: int, limits: Limits) -> int:
    """Executors that hold so many processors, but whole ones within the limit, and at least one."""
    enough = -(-processors // slots_per_executor)
    most = max(1, limits.max_processors // slots_per_executor)
    return max(1, min(enough, most))
