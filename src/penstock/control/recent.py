"""The steps of a run that is meant to last: the newest as they are, all of them as sums."""

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from typing import overload

from penstock.control.step import Step
from penstock.control.summary import RunSummary, RunTally

MOST_STEPS = 720  # an hour of five-second periods; what came before is in the history


class RecentSteps(Sequence[Step]):
    """The newest `MOST_STEPS` steps, oldest first, and the sums of all that were appended.

    One thread appends while others read: each read sees the steps of one moment.
    """

    def __init__(self, most: int = MOST_STEPS) -> None:
        self._lock = threading.Lock()
        self._steps: deque[Step] = deque(maxlen=most)
        self._tally = RunTally()

    def append(self, step: Step) -> None:
        """Take one more; beyond the limit the oldest goes."""
        with self._lock:
            self._steps.append(step)
            self._tally.take(step)

    def summary(self, max_latency_s: float, executors_min: int, executors_max: int) -> RunSummary:
        """What all steps so far come to, those that went included."""
        with self._lock:
            return self._tally.summary(max_latency_s, executors_min, executors_max)

    def __iter__(self) -> Iterator[Step]:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._steps)

    @overload
    def __getitem__(self, place: int) -> Step: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Step, ...]: ...
    def __getitem__(self, place: int | slice) -> Step | tuple[Step, ...]:
        return self._now()[place]

    def _now(self) -> tuple[Step, ...]:
        with self._lock:
            return tuple(self._steps)
