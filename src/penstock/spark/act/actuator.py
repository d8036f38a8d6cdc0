"""All that the loop may change on Spark: the number of executors, and where key groups live.

An executor that is to leave is emptied first, so that no task waits for one that takes none.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from penstock.control.actions import (
    Action,
    MigrationCost,
    Move,
    MoveKeyGroups,
    Outcome,
    SetExecutors,
    SetInterval,
    ShedLoad,
    UseVariants,
)
from penstock.errors import InvalidInput, PenstockError, Unavailable
from penstock.model.observation import GroupTraffic
from penstock.spark import handles
from penstock.spark.act.executors import SparkExecutors
from penstock.spark.act.placement import Moved, Placement, cannot_place
from penstock.spark.run.together import RunningTopology

log = logging.getLogger(__name__)


class SparkActuator:
    """SparkExecutors that empties what it removes, and moves key groups: control.ports.Actuator."""

    def __init__(
        self,
        session: SparkSession,
        placements: Sequence[Placement],
        resized: Callable[[int], None] | None = None,
        tell: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        """`resized` hears how many processors there are once their number has changed.

        `tell` passes something on to the sources; without it they cannot be told anything.
        """
        self._session = session
        self._executors = SparkExecutors(session)
        self._placements = placements  # of an attached session, they come and go
        self._resized, self._tell = resized, tell
        self._cannot_place = cannot_place(session)

    def unavailable(self) -> Mapping[str, str]:
        """Actions that cannot be carried out here, each with the reason."""
        reasons = dict(self._executors.unavailable())
        if self._cannot_place:
            reasons[MoveKeyGroups.NAME] = self._cannot_place
        if self._tell is None:
            for kind in (ShedLoad, UseVariants, SetInterval):
                reasons[kind.NAME] = "sources that are not Penstock's own cannot be told"
        return reasons

    def executors(self) -> int:
        """Executors asked for at present."""
        return self._executors.executors()

    def slots_per_executor(self) -> int:
        """Processors of one executor."""
        return self._executors.slots_per_executor()

    def act(self, action: Action) -> Outcome:
        """Carry an action out; waits, with a limit, until it is seen to be so."""
        if isinstance(action, MoveKeyGroups):
            return self._move(action)
        if isinstance(action, ShedLoad | UseVariants | SetInterval):
            return self._told_sources(action)
        cannot = self._executors.unavailable() or not self._placements or self._cannot_place
        if cannot or not isinstance(action, SetExecutors):
            return self._told(self._executors.act(action))
        leaving = self._who_leaves(action)
        try:
            for placement in self._placements if leaving else ():
                placement.evacuate(leaving)
        except PenstockError as reason:
            log.warning("executors %s leave before they are empty: %s", leaving, reason)
        try:
            return self._told(self._executors.act(SetExecutors(action.total, leaving)))
        finally:
            for placement in self._placements:
                placement.stay()

    def _told(self, outcome: Outcome) -> Outcome:
        """Stateless work follows from the next batch on; it needs no restart."""
        if outcome.done and self._resized is not None:
            self._resized(self.executors() * self.slots_per_executor())
        return outcome

    def _told_sources(self, action: ShedLoad | UseVariants | SetInterval) -> Outcome:
        """Sources look at each batch at what they were told; nothing waits for it."""
        if self._tell is None:
            return Outcome(action, False, self.unavailable()[action.NAME])
        if isinstance(action, ShedLoad):
            self._tell({"shed": action.share})
        elif isinstance(action, UseVariants):
            self._tell({"cheaper": list(action.operators)})
        else:
            self._tell({"interval_s": action.seconds})
        return Outcome(action, True, "sources were told; it holds from the next batch on")

    def _who_leaves(self, action: SetExecutors) -> tuple[str, ...]:
        """Those named, and the youngest where they are too few."""
        active = [one.id for one in handles.executors(self._session) if one.active]
        surplus = max(0, len(active) - max(1, action.total))
        named = [one for one in action.leaving if one in active]
        others = [one for one in reversed(active) if one not in named]
        return tuple((named + others)[:surplus])

    def _move(self, action: MoveKeyGroups) -> Outcome:
        began_s = time.monotonic()
        try:
            if self._cannot_place:
                raise Unavailable(self._cannot_place)
            for placement in self._placements:
                placement.refresh()
            moved = [
                placement.move(moves)
                for placement, moves in self._by_placement(action.moves)
                if moves
            ]
        except PenstockError as reason:
            return Outcome(action, False, str(reason), time.monotonic() - began_s)
        done = sum(len(one.done) for one in moved)
        cost = _summed(moved)
        detail = f"{done} of {len(action.moves)} key groups moved, {cost.state_bytes / 1e6:.3g} MB"
        detail += f" loaded in {cost.load_s:.2g} s of task time"
        whole = done == len(action.moves)
        return Outcome(action, whole, detail, time.monotonic() - began_s, cost)

    def _by_placement(
        self, moves: tuple[Move, ...]
    ) -> list[tuple[Placement, list[Move]]]:  # fmt: skip
        found = [
            (one, [move for move in moves if move.component in one.components])
            for one in self._placements
        ]
        known = {name for one in self._placements for name in one.components}
        unknown = [move.component for move in moves if move.component not in known]
        if unknown:
            raise InvalidInput(
                f"component is {unknown[0]!r}; known components with state: "
                f"{', '.join(sorted(known)) or 'none yet'}."
            )
        return found


def placements_of(running: RunningTopology) -> list[Placement]:
    """One for each query of a topology, told of its batches; none where nothing can be placed."""
    if cannot_place(running.session):
        return []
    by_query = {
        query.plan.name: Placement(running.session, started, query.plan)
        for query, started in zip(running.built.queries, running.queries, strict=True)
    }
    running.before_batch.append(lambda query, _: by_query[query].boundary())
    return list(by_query.values())


def traffic_of(placements: Sequence[Placement]) -> tuple[GroupTraffic, ...]:
    """Bytes between key groups, of all queries."""
    return tuple(traffic for placement in placements for traffic in placement.traffic())


def _summed(moved: Sequence[Moved]) -> MigrationCost:
    """Task times add up over queries; the delay is that of the query which waited longest."""
    costs = [one.cost for one in moved]
    delays = [cost.delay_s for cost in costs if cost.delay_s == cost.delay_s]
    return MigrationCost(
        sum(cost.key_groups for cost in costs),
        sum(cost.state_bytes for cost in costs),
        sum(cost.load_s for cost in costs),
        max(delays, default=float("nan")),
    )
