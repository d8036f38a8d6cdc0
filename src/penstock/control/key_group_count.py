"""Whether state is divided into far too many key groups, or too few, and what would do.

A key group is a task in every batch, whether it has rows or not. Two for each processor that there
may be are enough to balance them; many more, and a small batch consists of tasks that do nothing.
Fewer than processors, and some of these never work. The number changes only while the query
stands still, so this is advice.
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from penstock.control.ports import Measurer
from penstock.model.decision import RoomDecision
from penstock.model.observation import Observation

ROOM = "key groups"
POLICY = "number"
PERIODS = 6  # in which batches ended, before anything is said
REMEMBERED = 2 * PERIODS  # of these: what a batch costs now, not what it did at the start
LONGEST = 20  # periods that a batch may take
FOR_EACH_PROCESSOR = 2
FAR_OFF = 4  # times what would do
FEW_ROWS = 100  # for a task: its time is then almost all its own
LEAST_SHARE = 0.2  # of a batch that has to be won
BUSY = 0.5  # of the time in which key groups work: with less to do, more of them win nothing

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TaskCost:
    """What the tasks of key groups take of a batch, at the median of some periods."""

    batch_s: float
    task_s: float  # processor time of a task
    stages: float  # of key groups in a batch
    processors: int

    def of(self, key_groups: float) -> float:
        """Seconds of a batch for so many key groups."""
        return self.task_s * self.stages * key_groups / self.processors


def task_cost(window: Sequence[Observation], key_groups: int) -> TaskCost | None:
    """None where rows, and not tasks, take the time of a batch, or too little was seen."""
    seen, busy_s = [], 0.0
    for one in window:
        tasks, batches = sum(component.tasks for component in one.components), one.batches
        # A batch may take several periods: its tasks worked in all of them.
        busy_s += sum(component.busy_s for component in one.components)
        if batches is None or not batches.count:
            continue
        if tasks >= key_groups and one.processors:
            task_s, stages = busy_s / batches.count / tasks, tasks // key_groups
            seen.append(
                (batches.mean_duration_s, batches.mean_rows, task_s, stages, one.processors)
            )
        busy_s = 0.0
    if len(seen) < PERIODS:
        return None
    batch_s, rows, task_s, stages, processors = (
        median(column) for column in zip(*seen[-REMEMBERED:], strict=True)
    )
    if rows / key_groups > FEW_ROWS:
        return None
    return TaskCost(batch_s, task_s, stages, int(processors))


def _keyed_s(seen: Observation) -> float:
    """Processor time of the tasks that are bound to key groups."""
    return sum(float(np.nansum(groups.load_s)) for groups in seen.key_groups.values())


def advise_key_groups(
    window: Sequence[Observation], key_groups: int, most_processors: int
) -> RoomDecision | None:
    """Another number of key groups, if it is worth standing still for."""
    if not window or key_groups < 1:
        return None
    enough = FOR_EACH_PROCESSOR * most_processors
    at_s, processors = window[-1].at_s, window[-1].processors
    if key_groups < processors and _keyed_s(window[-1]) > BUSY * key_groups * window[-1].period_s:
        what = (
            f"{key_groups} key groups keep at most {key_groups} of {processors} processors busy; "
            f"{enough} would do for {most_processors}"
        )
        return RoomDecision(at_s, ROOM, POLICY, what, {"present": key_groups, "enough": enough})
    if key_groups < FAR_OFF * enough:
        return None
    cost = task_cost(window, key_groups)
    if cost is None:
        return None
    now_s, then_s = cost.of(key_groups), cost.of(enough)
    if now_s - then_s < LEAST_SHARE * cost.batch_s:
        return None
    what = (
        f"the tasks of {key_groups} key groups take about {now_s:.2g} s of each batch of "
        f"{cost.batch_s:.2g} s; {enough} would do for {most_processors} processors and take "
        f"{then_s:.2g} s"
    )
    numbers = {"present": key_groups, "enough": enough, "cost_s": now_s, "then_s": then_s}
    return RoomDecision(at_s, ROOM, POLICY, what, numbers)


class KeyGroupAdvice:
    """A measurer that adds the advice to what another one observed, once for each number."""

    def __init__(
        self, measurer: Measurer, key_groups: Callable[[], int], most_processors: int
    ) -> None:
        """`key_groups` is asked each time; 0 where there is no state."""
        self._measurer, self._key_groups = measurer, key_groups
        self._most = most_processors
        self._window: deque[Observation] = deque(maxlen=LONGEST * REMEMBERED)
        self._said: float | None = None

    def observe(self) -> Observation | None:
        """The observation, with the advice among what was decided since the one before."""
        seen = self._measurer.observe()
        if seen is None:
            return None
        self._window.append(seen)
        made = advise_key_groups(tuple(self._window), self._key_groups(), self._most)
        if made is None or made.numbers["enough"] == self._said:
            return seen
        self._said = made.numbers["enough"]
        log.warning("%s; `penstock key-groups CHECKPOINT %d` changes it.", made.what, self._said)
        return replace(seen, decided=(*seen.decided, made))
