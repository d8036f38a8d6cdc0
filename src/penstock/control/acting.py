"""What the loop does about a decision: only differences, at most one disruptive kind a period."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Literal

from penstock.control.actions import (
    Action,
    MoveKeyGroups,
    Outcome,
    SetExecutors,
    SetInterval,
    SetParallelism,
)
from penstock.control.allocating import Allocating, waits_for
from penstock.control.batch_interval import Pacing
from penstock.control.deciding import Cluster, Deciding
from penstock.control.failures import Border
from penstock.control.guards.basic import resized
from penstock.control.last_resort import Resorting
from penstock.control.move_timing import moves_wait
from penstock.control.ports import Actuator, Clock
from penstock.control.records import AllocationRecord, DecisionRecord
from penstock.control.step import Step
from penstock.model.decision import Limits, RoomDecision

log = logging.getLogger(__name__)


class Acting:
    """Carries decisions out in an order that is safe, and says why something waits."""

    def __init__(
        self,
        clock: Clock,
        actuator: Actuator,
        border: Border,
        deciding: Deciding,
        limits: Limits,
        sharing: Literal["time", "space"],
        allocating: Allocating | None,
        given: Mapping[str, int] | None,
        resorting: Resorting | None = None,
        pacing: Pacing | None = None,
    ) -> None:
        """`given` is what components that run apart begin with."""
        self._clock, self._actuator, self._border = clock, actuator, border
        self._deciding, self._limits, self._sharing = deciding, limits, sharing
        self._allocating, self._resorting, self._pacing = allocating, resorting, pacing
        self._divides, self._given = given is not None, dict(given or {})

    def carry_out(
        self, step: Step, record: DecisionRecord, cluster: Cluster, dry_run: bool
    ) -> Step:
        """The step with what was done of its decision."""
        wanted = executors_for(record.guarded.processors, cluster.slots, self._limits)
        outcome, held = None, None
        slots = min(wanted, cluster.executors) * cluster.slots
        divided = self._divide(step.at_s, record, slots, dry_run)
        allocating = partial(self._allocate, wanted, dry_run)
        allocation = self._border.attempt("allocation", allocating, step.at_s)
        if allocation is not None and wanted > cluster.executors and not allocation.holds_scaling:
            # One kind of disruptive act in a period, and what adds processors comes first.
            allocation = allocation.put_off("executors are added first")
        elif allocation is not None:
            bound_s = self._limits.max_latency_s
            wait = moves_wait(allocation, record, self._deciding.newest, bound_s)
            allocation = allocation if wait is None else allocation.put_off(wait)
        moved = self._move(step.at_s, allocation, cluster.cannot_move, dry_run)
        waits = self._quality_first(wanted - cluster.executors)
        waits = waits or waits_for(allocation, moved, wanted - cluster.executors)
        if wanted != cluster.executors and waits is not None:
            held = waits
        elif wanted != cluster.executors:
            if dry_run:
                held = "dry run: not carried out"
            elif cluster.cannot_scale is not None:
                held = f"advice only: {cluster.cannot_scale}"
            else:
                leaving = allocation.leaving if allocation is not None else ()
                outcome = self._act(step.at_s, SetExecutors(wanted, leaving))
        if outcome is not None and outcome.done:
            plan = resized(record.guarded, wanted * cluster.slots, self._sharing)
            # An act may take longer than a period.
            self._deciding.acted(self._clock.now_s(), dict(plan.parallelism))
            # What newly started executors hold is handed out once they are there.
            divided = self._divide(step.at_s, record, wanted * cluster.slots, dry_run) or divided
        if held is not None and not dry_run:
            # Which rule won is a part of what the history keeps of the decision.
            record = replace(record, guard_reasons=(*record.guard_reasons, held))
        step = replace(
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
        if self._resorting is not None:
            resorting = partial(self._resort, self._resorting, step, cluster, dry_run)
            step = self._border.attempt("last resort", resorting, step.at_s) or step
        if self._pacing is not None:
            pacing = partial(self._pace, self._pacing, step, cluster, dry_run)
            step = self._border.attempt("interval", pacing, step.at_s) or step
        return step

    def _quality_first(self, change: int) -> str | None:
        """Executors stay while results are worse for want of them."""
        if change >= 0 or self._resorting is None or not self._resorting.plan.in_use:
            return None
        return "no scaling in: the last resort is in use, and is undone first"

    def _resort(self, resorting: Resorting, step: Step, cluster: Cluster, dry_run: bool) -> Step:
        """The last resort, where no processors and no placement can help any more."""
        seen = self._deciding.newest
        there = cluster.executors * cluster.slots
        most = max(1, self._limits.max_processors // cluster.slots)
        no_more = cluster.executors >= most or cluster.cannot_scale is not None
        nothing_else = step.outcome is None and step.moved is None and step.divided is None
        at_limit = no_more and seen.processors >= there
        found = resorting.look(seen, there, at_limit)
        if found is None or not nothing_else:  # what was done may be enough
            return step
        outcomes = []
        resorting.wait()
        for action in resorting.actions(found.plan):
            if not dry_run and action.NAME not in cluster.cannot:
                outcomes.append(self._act(step.at_s, action))
                resorting.learn(outcomes[-1], seen)
        return _also(step, found.told, outcomes)

    def _pace(self, pacing: Pacing, step: Step, cluster: Cluster, dry_run: bool) -> Step:
        """How often a batch begins, where nothing else changed."""
        if step.outcome is not None or step.moved is not None or step.room_outcomes:
            return step
        told = pacing.look(self._deciding.newest)
        if told is None:
            return step
        action, outcomes = SetInterval(told.numbers["interval_s"]), []
        if not dry_run and action.NAME not in cluster.cannot:
            outcomes.append(self._act(step.at_s, action))
            if outcomes[-1].done:
                pacing.interval_s = action.seconds
        return _also(step, told, outcomes)

    def _allocate(self, wanted: int, dry_run: bool) -> AllocationRecord | None:
        if self._allocating is None:
            return None
        return self._allocating.plan(self._deciding.newest, wanted, dry_run)

    def _move(
        self, at_s: float, record: AllocationRecord | None, cannot_move: str | None, dry_run: bool
    ) -> Outcome | None:
        if self._allocating is None or record is None or not record.moves or dry_run:
            return None
        if cannot_move is not None:
            log.debug("key groups stay: %s", cannot_move)
            return None
        outcome = self._act(at_s, MoveKeyGroups(record.moves))
        self._allocating.learn(outcome)
        return outcome

    def _divide(
        self, at_s: float, record: DecisionRecord, slots: int, dry_run: bool
    ) -> Outcome | None:
        """Give components their processors, within the slots there are; None if they have them."""
        if not self._divides or dry_run:
            return None
        plan = resized(record.guarded, slots, self._sharing).parallelism
        wanted = {name: count for name, count in plan.items() if count}
        if wanted == {name: self._given.get(name) for name in wanted}:
            return None
        outcome = self._act(at_s, SetParallelism(wanted))
        if outcome.done:
            self._given = wanted
            self._deciding.acted(self._clock.now_s())
        return outcome

    def _act(self, at_s: float, action: Action) -> Outcome:
        outcome = self._border.attempt("actuator", partial(self._actuator.act, action), at_s)
        return outcome or Outcome(action, done=False, detail=self._border.failures[-1].message)


def _also(step: Step, decided: RoomDecision, outcomes: list[Outcome]) -> Step:
    return replace(
        step, room_decisions=(*step.room_decisions, decided),
        room_outcomes=(*step.room_outcomes, *outcomes),
    )  # fmt: skip


def executors_for(processors: int, slots_per_executor: int, limits: Limits) -> int:
    """Executors that hold so many processors, but whole ones within the limit, and at least one."""
    enough = -(-processors // slots_per_executor)
    most = max(1, limits.max_processors // slots_per_executor)
    return max(1, min(enough, most))
