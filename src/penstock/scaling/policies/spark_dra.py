"""The rules of Spark's dynamic allocation, as a baseline.

Tasks that wait for a slot longer than the back-log timeout bring one executor; while they go on
waiting, each sustained timeout brings twice as many as the one before. An executor that ran
nothing for the idle timeout is removed. It knows no rates and no latency.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from penstock.errors import InvalidInput
from penstock.model.decision import Decision, ScalingPlan
from penstock.model.observation import ComponentObservation, Observation
from penstock.scaling.demand import excess_rows, gaps_of, idle
from penstock.scaling.plans import change, hold, separate_plan, shared_plan
from penstock.scaling.policies.options import option
from penstock.scaling.policies.policy import ScalingContext

_MOST_ROUNDS = 20  # a million executors


@dataclass(frozen=True)
class SparkDra:
    """spark.dynamicAllocation's timeouts, with Spark's defaults."""

    looks_ahead: ClassVar[bool] = False

    backlog_timeout_s: float = option(
        1.0, "How long tasks wait for a slot before the first executor is added.",
        least=0.001, greatest=86_400,
    )  # fmt: skip
    sustained_timeout_s: float = option(
        1.0, "How long they go on waiting before twice as many are added.",
        least=0.001, greatest=86_400,
    )  # fmt: skip
    idle_timeout_s: float = option(
        60.0, "How long an executor is idle before it is removed.", least=0.001, greatest=86_400
    )

    def __post_init__(self) -> None:
        if not (min(self.backlog_timeout_s, self.sustained_timeout_s, self.idle_timeout_s) > 0):
            raise InvalidInput("the timeouts of spark-dra must be above 0 s.")

    @property
    def name(self) -> str:
        return "spark-dra"

    def decide(self, context: ScalingContext) -> Decision[ScalingPlan]:
        """Executors by back-log and idleness."""
        newest = context.newest
        if newest is None:
            return hold(context, "no measurement yet")
        if context.sharing == "time":
            return self._shared(context, newest)
        return self._separate(context, newest)

    def _shared(self, context: ScalingContext, newest: Observation) -> Decision[ScalingPlan]:
        before = max(1, context.current.processors)
        slots = max((node.slots for node in newest.nodes), default=1)
        added = self._added(context.window, lambda o: _tasks_wait(context, o)) * slots
        if added:
            tasks = _most_tasks(newest)
            wanted = before + added
            if tasks is not None:
                wanted = max(before, min(wanted, math.ceil(tasks / slots) * slots))
            because = f"tasks wait for slots: {added} more asked for"
        else:
            wanted = before - self._idle_slots(context)
            because = "nothing waits" if wanted == before else "executors idle for too long"
        plan = shared_plan(context, wanted)
        return Decision(plan, (change("processors", before, plan.processors, because),))

    def _separate(self, context: ScalingContext, newest: Observation) -> Decision[ScalingPlan]:
        wanted, waiting = {}, {}
        current = dict(context.current.parallelism)
        for component in newest.components:
            current.setdefault(component.name, max(1, component.parallelism))
        for name, before in sorted(current.items()):
            added = self._added(context.window, partial(_rows_wait, name=name))
            gone = 0 if added else self._idle_processors(context, name, before)
            wanted[name] = before + added - gone
            waiting[name] = float(added)
        plan = separate_plan(context, wanted, waiting)
        lines = tuple(
            change(name, before, plan.parallelism[name], "by back-log and idle timeouts")
            for name, before in sorted(current.items())
        )
        return Decision(plan, lines)

    def _added(self, window: Sequence[Observation], waits: Callable[[Observation], bool]) -> int:
        """Executors of the rounds that ended in the newest period: 1, 2, 4, ..."""
        lasted_s = 0.0
        for observation in reversed(window):
            if not waits(observation):
                break
            lasted_s += observation.period_s
        before_s = max(0.0, lasted_s - window[-1].period_s)
        if self._rounds(before_s) == _MOST_ROUNDS:
            return 1 << _MOST_ROUNDS
        return (1 << self._rounds(lasted_s)) - (1 << self._rounds(before_s))

    def _rounds(self, lasted_s: float) -> int:
        if lasted_s < self.backlog_timeout_s:
            return 0
        rounds = 1 + math.floor((lasted_s - self.backlog_timeout_s) / self.sustained_timeout_s)
        return min(_MOST_ROUNDS, rounds)

    def _past(self, context: ScalingContext) -> list[Observation]:
        """The observations of the idle timeout; none when they do not cover it or have gaps."""
        newest, oldest = context.window[-1], context.window[0]
        start_s = newest.at_s - self.idle_timeout_s
        if oldest.at_s - oldest.period_s > start_s + 1e-9:
            return []
        past = [o for o in context.window if o.at_s > start_s + 1e-9]
        return [] if any(gaps_of(o) for o in past) else past

    def _idle_slots(self, context: ScalingContext) -> int:
        past = self._past(context)
        if not past:
            return 0
        return sum(
            node.slots
            for node in past[-1].nodes
            if not node.draining
            and all(other.busy_s == 0 for o in past for other in o.nodes if other.name == node.name)
        )

    def _idle_processors(self, context: ScalingContext, name: str, before: int) -> int:
        past = [_component(o, name) for o in self._past(context)]
        unused = bool(past) and all(
            c is not None and c.busy_s == 0 and c.arrival_rate_per_s == 0 and c.backlog_rows == 0
            for c in past
        )
        return before - 1 if unused else 0


def _tasks_wait(context: ScalingContext, observation: Observation) -> bool:
    """Whether more tasks were there than slots: by their number, else by rows left over."""
    if idle(observation):
        return False
    tasks = _most_tasks(observation)
    if tasks is not None:
        return tasks > max(1, observation.processors)
    return excess_rows(context, observation) > 0


def _rows_wait(observation: Observation, name: str) -> bool:
    component = _component(observation, name)
    return component is not None and component.backlog_rows > 0


def _most_tasks(observation: Observation) -> int | None:
    counts = [len(held.load_s) for held in observation.key_groups.values()]
    return max(counts, default=None)


def _component(observation: Observation, name: str) -> ComponentObservation | None:
    return next((c for c in observation.components if c.name == name), None)
