"""What the loop does about a decision: only differences, at most one disruptive kind a period."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from penstock.control.actions import (
    Action,
    MoveKeyGroups,
    Outcome,
    SetExecutors,
    SetInterval,
    SetParallelism,
    SetRouteTasks,
)
from penstock.control.allocating import waits_for
from penstock.control.batch_interval import BatchInterval
from penstock.control.controlled import Controlled
from penstock.control.deciding import Cluster, Deciding
from penstock.control.failures import Attempts
from penstock.control.forms import Forms
from penstock.control.guards.guard import resized
from penstock.control.last_resort import LastResort
from penstock.control.ports import Clock
from penstock.control.records import AllocationRecord, DecisionRecord
from penstock.control.rooms import Rooms
from penstock.control.step import Step
from penstock.model.decision import Limits, RoomDecision
from penstock.model.observation import Observation

PRESSING = 50.0  # points of load distance: half a processor
log = logging.getLogger(__name__)


def route_tasks(
    most: Mapping[str, int], in_use: Mapping[str, int], processors: int
) -> SetRouteTasks | None:
    """What has to change, or None; `most` is the number of partitions of each source's route.

    >>> route_tasks({"reports": 8}, {}, 4)
    SetRouteTasks(tasks={'reports': 4})
    >>> route_tasks({"reports": 8}, {"reports": 8}, 10) is None
    True
    """
    if processors < 1:
        return None
    wanted = {source: min(partitions, processors) for source, partitions in most.items()}
    changed = {source: tasks for source, tasks in wanted.items() if in_use.get(source) != tasks}
    return SetRouteTasks(changed) if changed else None


def reason_to_delay_moves(
    allocation: AllocationRecord,
    record: DecisionRecord,
    newest: Observation,
    bound_s: float,
    can_grow: bool = True,
) -> str | None:
    """Why planned moves should wait for a later period; None if they should not.

    Madsen et al. 2017 move state to keep nodes even; in a period in which processors are short or
    results late, the delay of a move costs more than some unevenness does. What cannot wait is
    moved all the same: what is on nodes that are to be removed, or makes one much heavier. Where no
    executor can come (`can_grow` is false), better balance is all there is to hope for.
    """
    if not can_grow:
        return None
    if allocation.holds_scaling or allocation.leaving or allocation.load_distance >= PRESSING:
        return None
    wanted, current = record.decision.plan.processors, record.current.processors
    if wanted > current:
        return f"{wanted} processors are wanted and {current} are there, which comes first"
    latency = newest.latency
    if latency is not None and latency.mean_s > bound_s:
        return f"results take {latency.mean_s:.3g} s of {bound_s:g} s, and a move delays them more"
    return None


class Acting:
    """Carries decisions out in an order that is safe, and says why something waits."""

    def __init__(
        self,
        controlled: Controlled,
        rooms: Rooms,
        deciding: Deciding,
        clock: Clock,
        attempts: Attempts,
    ) -> None:
        self._controlled, self._rooms, self._deciding = controlled, rooms, deciding
        self._clock, self._attempts = clock, attempts
        self._route_tasks: dict[str, int] = {}  # in use, by source
        self._gave_fewer = False  # than the cluster was asked for the last time

    def carry_out(
        self, step: Step, record: DecisionRecord, cluster: Cluster, dry_run: bool
    ) -> Step:
        """The step with what was done of its decision."""
        wanted = executors_for(record.guarded.processors, cluster.slots, self._controlled.limits)
        outcome, held = None, None
        slots = min(wanted, cluster.executors) * cluster.slots
        divided = self._divide(step.at_s, record, slots, dry_run)
        # Executors that cannot come or go are not planned with, nor those that did not come.
        no_more = cluster.cannot_scale is not None or self._gave_fewer
        there = wanted if cluster.cannot_scale is None else cluster.executors
        there = min(there, cluster.executors) if no_more else there
        allocating = partial(self._allocate, there, dry_run)
        allocation = self._attempts.attempt("allocation", allocating, step.at_s)
        if allocation is not None and there > cluster.executors and not allocation.holds_scaling:
            # One kind of disruptive act in a period, and what adds processors comes first.
            allocation = allocation.put_off("executors are added first")
        elif allocation is not None:
            bound_s = self._controlled.limits.max_latency_s
            can_grow = not no_more and cluster.executors < self._most(cluster)
            wait = reason_to_delay_moves(
                allocation, record, self._deciding.newest, bound_s, can_grow
            )
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
                self._gave_fewer = wanted > cluster.executors and not outcome.done
        if outcome is not None and outcome.done:
            plan = resized(record.guarded, wanted * cluster.slots, self._controlled.sharing)
            self._deciding.asked(
                step.at_s, cluster.executors * cluster.slots, wanted * cluster.slots
            )
            given = None if self._deciding.divides else plan.parallelism
            self._deciding.acted(self._since(step.at_s), given)
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
        if self._rooms.last_resort is not None:
            last_resort = partial(
                self._use_last_resort, self._rooms.last_resort, step, cluster, dry_run
            )
            step = self._attempts.attempt("last resort", last_resort, step.at_s) or step
        if self._rooms.forms is not None:
            choosing = partial(self._use_forms, self._rooms.forms, step, cluster, dry_run)
            step = self._attempts.attempt("forms", choosing, step.at_s) or step
        if self._rooms.batch_interval is not None:
            pacing = partial(self._pace, self._rooms.batch_interval, step, cluster, dry_run)
            step = self._attempts.attempt("interval", pacing, step.at_s) or step
        return self._spread_routes(step, cluster, dry_run)

    def _since(self, decided_at_s: float) -> float:
        """From when a change counts: its decision, or its end if it took longer than a period."""
        now_s = self._clock.now_s()
        return now_s if now_s - decided_at_s >= self._deciding.newest.period_s else decided_at_s

    def _most(self, cluster: Cluster) -> int:
        """Executors that the limits allow."""
        return max(1, self._controlled.limits.max_processors // cluster.slots)

    def _quality_first(self, change: int) -> str | None:
        """Executors stay while results are worse for want of them."""
        last_resort = self._rooms.last_resort
        if change >= 0 or last_resort is None or not last_resort.plan.in_use:
            return None
        return "no scaling in: the last resort is in use, and is undone first"

    def _use_last_resort(
        self, last_resort: LastResort, step: Step, cluster: Cluster, dry_run: bool
    ) -> Step:
        """The last resort, where no processors and no placement can help any more."""
        seen = self._deciding.newest
        there = cluster.executors * cluster.slots
        no_more = (
            cluster.executors >= self._most(cluster)
            or cluster.cannot_scale is not None
            or self._gave_fewer
        )
        scaled = step.outcome is not None and step.outcome.done
        nothing_else = not scaled and step.moved is None and step.divided is None
        at_limit = no_more and seen.processors >= there
        found = last_resort.look(seen, there, at_limit)
        if found is None or not nothing_else:  # what was done may be enough
            return step
        outcomes = []
        last_resort.wait()
        for action in last_resort.actions(found.plan):
            if not dry_run and action.NAME not in cluster.cannot:
                outcomes.append(self._act(step.at_s, action))
                last_resort.learn(outcomes[-1], seen)
        return _also(step, found.decision, outcomes)

    def _use_forms(self, forms: Forms, step: Step, cluster: Cluster, dry_run: bool) -> Step:
        """The form of an operator that costs least, where nothing else changes what is measured."""
        resort = self._rooms.last_resort
        if step.outcome is not None or step.moved is not None or step.room_outcomes:
            return step
        if resort is not None and resort.plan.in_use:
            return step
        found = forms.look(self._deciding.newest)
        if found is None:
            return step
        outcomes = []
        if found.action is not None and not dry_run and found.action.NAME not in cluster.cannot:
            outcomes.append(self._act(step.at_s, found.action))
            forms.learn(outcomes[-1])
        return _also(step, found.decision, outcomes)

    def _pace(self, pacing: BatchInterval, step: Step, cluster: Cluster, dry_run: bool) -> Step:
        """How often a batch begins, where nothing else changed."""
        if step.outcome is not None or step.moved is not None or step.room_outcomes:
            return step
        decision = pacing.look(self._deciding.newest)
        if decision is None:
            return step
        action, outcomes = SetInterval(decision.numbers["interval_s"]), []
        if not dry_run and action.NAME not in cluster.cannot:
            outcomes.append(self._act(step.at_s, action))
            if outcomes[-1].done:
                pacing.interval_s = action.seconds
        return _also(step, decision, outcomes)

    def _allocate(self, wanted: int, dry_run: bool) -> AllocationRecord | None:
        if self._rooms.allocating is None:
            return None
        return self._rooms.allocating.plan(self._deciding.newest, wanted, dry_run)

    def _move(
        self, at_s: float, record: AllocationRecord | None, cannot_move: str | None, dry_run: bool
    ) -> Outcome | None:
        if self._rooms.allocating is None or record is None or not record.moves or dry_run:
            return None
        if cannot_move is not None:
            log.debug("key groups stay: %s", cannot_move)
            return None
        outcome = self._act(at_s, MoveKeyGroups(record.moves))
        self._rooms.allocating.learn(outcome)
        return outcome

    def _divide(
        self, at_s: float, record: DecisionRecord, slots: int, dry_run: bool
    ) -> Outcome | None:
        """Give components their processors, within the slots there are; None if they have them."""
        if not self._deciding.divides or dry_run:
            return None
        if record.guarded.parallelism == record.current.parallelism:
            return None  # to keep what runs is no decision to hand out anything anew
        plan = resized(record.guarded, slots, "space", self._deciding.newest).parallelism
        wanted = {name: count for name, count in plan.items() if count}
        given = self._deciding.parallelism
        if wanted == {name: given.get(name) for name in wanted}:
            return None
        outcome = self._act(at_s, SetParallelism(wanted))
        if outcome.done:
            self._deciding.acted(self._since(at_s), {**given, **wanted})
        return outcome

    def _spread_routes(self, step: Step, cluster: Cluster, dry_run: bool) -> Step:
        """Routed sources use the processors that were seen, in the next batch already."""
        seen = self._deciding.newest.processors
        action = route_tasks(self._controlled.route_tasks, self._route_tasks, seen)
        if action is None or dry_run or action.NAME in cluster.cannot:
            return step
        outcome = self._act(step.at_s, action)
        if outcome.done:
            self._route_tasks |= action.tasks
        return replace(step, room_outcomes=(*step.room_outcomes, outcome))

    def _act(self, at_s: float, action: Action) -> Outcome:
        outcome = self._attempts.attempt(
            "actuator", partial(self._controlled.actuator.act, action), at_s
        )
        return outcome or Outcome(action, done=False, detail=self._attempts.failures[-1].message)


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
