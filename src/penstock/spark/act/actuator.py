"""All that the loop may change on Spark: the number of executors, and where key groups live.

An executor that is to leave is emptied first, so that no task waits for one that takes none.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pyspark.sql import SparkSession

from penstock.control.actions import (
    Action,
    MigrationCost,
    Move,
    MoveKeyGroups,
    Outcome,
    SetExecutors,
    SetInterval,
    SetRouteTasks,
    ShedLoad,
    UseForms,
    UseVariants,
)
from penstock.errors import InvalidInput, PenstockError, Unavailable
from penstock.model.observation import GroupTraffic
from penstock.model.topology import form_id
from penstock.spark import handles
from penstock.spark.act.executors import SparkExecutors
from penstock.spark.act.placement import Moved, Placement, cannot_place

log = logging.getLogger(__name__)


class Sources(Protocol):
    """Sources that look at each batch at what is wanted of them."""

    def send_parallelism(self, processors: int) -> None:
        """Let stateless work behind them use so many tasks."""

    def send_orders(self, what: dict[str, Any]) -> None:
        """Say something else than before: shedding, cheaper forms, the interval of batches."""

    def use_tasks(self, source: str, tasks: int) -> None:
        """Deal the rows of a routed source to so many tasks."""


class SparkActuator:
    """SparkExecutors that empties what it removes, and moves key groups: control.ports.Actuator."""

    def __init__(
        self,
        session: SparkSession,
        placements: Sequence[Placement],
        sources: Sources | None = None,
        all_ours: bool = False,
    ) -> None:
        """`sources` follow the number of processors; if `all_ours`, they also shed and the like."""
        self._session = session
        self._executors = SparkExecutors(session)
        self._placements = placements  # they come and go, with the queries
        self._sources, self._all_ours = sources, all_ours
        self._cannot_place = cannot_place(session)

    def unavailable(self) -> Mapping[str, str]:
        reasons = dict(self._executors.unavailable())
        if self._cannot_place:
            reasons[MoveKeyGroups.NAME] = self._cannot_place
        if self._sources is None or not self._all_ours:
            for kind in (ShedLoad, UseVariants, UseForms, SetInterval):
                reasons[kind.NAME] = "sources that are not Penstock's own take no orders"
        if self._sources is None:
            reasons[SetRouteTasks.NAME] = "sources that are not Penstock's own have no routes"
        return reasons

    def executors(self) -> int:
        return self._executors.executors()

    def take_over(self) -> None:
        """From here on Spark's own dynamic allocation, if it is on, changes nothing any more."""
        self._executors.take_over()

    def slots_per_executor(self) -> int:
        return self._executors.slots_per_executor()

    def act(self, action: Action) -> Outcome:
        if isinstance(action, MoveKeyGroups):
            return self._move(action)
        if isinstance(action, ShedLoad | UseVariants | UseForms | SetInterval | SetRouteTasks):
            return self._send_order(action)
        cannot = self._executors.unavailable() or not self._placements or self._cannot_place
        if cannot or not isinstance(action, SetExecutors):
            return self._spread(self._executors.act(action))
        leaving = self._who_leaves(action)
        try:
            for placement in self._placements if leaving else ():
                placement.evacuate(leaving)
        except PenstockError as reason:
            log.warning("executors %s are removed before they are empty: %s", leaving, reason)
        try:
            return self._spread(self._executors.act(SetExecutors(action.total, leaving)))
        finally:
            for placement in self._placements:
                placement.stay()

    def _spread(self, outcome: Outcome) -> Outcome:
        """Stateless work follows from the next batch on; it needs no restart."""
        if outcome.done and self._sources is not None:
            self._sources.send_parallelism(self.executors() * self.slots_per_executor())
        return outcome

    def _send_order(
        self, action: ShedLoad | UseVariants | UseForms | SetInterval | SetRouteTasks
    ) -> Outcome:
        """Sources look at each batch at what is wanted of them; nothing waits for it."""
        if self._sources is None or action.NAME in self.unavailable():
            return Outcome(action, False, self.unavailable()[action.NAME])
        if isinstance(action, ShedLoad):
            self._sources.send_orders({"shed": action.share})
        elif isinstance(action, UseVariants):
            self._sources.send_orders({"cheaper": list(action.operators)})
        elif isinstance(action, UseForms):
            self._sources.send_orders({"forms": [form_id(*one) for one in action.forms.items()]})
        elif isinstance(action, SetInterval):
            self._sources.send_orders({"interval_s": action.seconds})
        else:
            for source, tasks in action.tasks.items():
                self._sources.use_tasks(source, tasks)
        return Outcome(action, True, "sources know; it holds from the next batch on")

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
