"""The loop over something that runs, in a thread of its own: begun, watched, summed up, ended.

What fails inside a period is caught by the loop itself; a thread that dies is for what nobody
foresaw. Another takes over, because one that was ended in the middle of a call may have left half
an answer behind.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import overload

from penstock.config import Settings
from penstock.control.assembly import assemble_loop, rooms_for
from penstock.control.clock import WallClock
from penstock.control.controlled import Controlled
from penstock.control.ports import Clock, History
from penstock.control.records import FailureRecord
from penstock.control.step import Step
from penstock.control.summary import RunSummary, RunTally
from penstock.model.decision import USUAL_SHARE
from penstock.model.observation import Observation

log = logging.getLogger(__name__)

THREAD = "penstock-loop"
AGAIN_AFTER_S = 1.0
MOST_STEPS = 720  # an hour of five-second periods; what came before is in the history
JOIN_LIMIT_S = 70.0  # an act under way may take a minute


class LoopThread:
    """Runs until the function ends by itself or the clock is stopped."""

    def __init__(
        self, run: Callable[[], None], clock: Clock, died: Callable[[str], None] | None = None
    ) -> None:
        """`died` is called with the reason each time the loop is about to be restarted."""
        self._run = run
        self._clock = clock
        self._died = died
        self._why: str | None = None
        self._keeper = threading.Thread(target=self._keep, name="penstock-keeper", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._keeper.start()

    def join(self, timeout_s: float) -> None:
        """Wait for the end; the clock must be stopped for it to come."""
        self._keeper.join(timeout=timeout_s)

    def _keep(self) -> None:
        while True:
            thread = threading.Thread(target=self._once, name=THREAD, daemon=True)
            thread.start()
            thread.join()
            why = self._why
            if why is None:
                return
            log.warning("the control loop died and is being restarted: %s", why)
            if self._died is not None:
                try:
                    self._died(why)
                except Exception as error:  # noqa: BLE001 - a failing report must not stop it for good
                    log.warning(
                        "the control loop's failure could not be recorded in the history: %s", error
                    )
            if not self._clock.wait_s(AGAIN_AFTER_S):
                return

    def _once(self) -> None:
        self._why = "it ended without a word"
        try:
            self._run()
            self._why = None
        except BaseException as error:  # noqa: BLE001 - whatever it was, the query goes on
            self._why = f"{type(error).__name__}: {error}".strip(": ")


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

    def summary(
        self, max_latency_s: float, executors_min: int, executors_max: int,
        share: float = USUAL_SHARE,
    ) -> RunSummary:  # fmt: skip
        """What all steps so far come to, those that went included."""
        with self._lock:
            return self._tally.summary(max_latency_s, executors_min, executors_max, share)

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


class Controller:
    """Keeps a latency bound; a loop that dies is restarted, and what it controls goes on."""

    def __init__(
        self,
        settings: Settings,
        controlled: Controlled,
        history: History,
        max_latency_s: float,
        on_step: Callable[[Step], None] | None = None,
    ) -> None:
        self._settings, self._history, self._on_step = settings, history, on_step
        self._max_latency_s, self._share = max_latency_s, controlled.limits.share
        self.steps = RecentSteps()
        self.rooms = rooms_for(settings, controlled)
        self._clock = WallClock()
        self._loop = assemble_loop(
            settings, controlled, self.rooms,
            clock=self._clock, history=history, on_step=self._stepped,
        )  # fmt: skip
        self._thread = LoopThread(self._loop.run, self._clock, self._died)

    def start(self) -> None:
        """Begin; it ends by itself with the program."""
        self._thread.start()

    def advise_only(self, on: bool) -> None:
        """Decide without acting, or act again."""
        self._loop.advise_only(on)

    def stop(self) -> None:
        """Decide nothing more; what is under way is let come to its end. Harmless twice."""
        self._clock.stop()
        self._thread.join(JOIN_LIMIT_S)

    def look_once_more(self) -> None:
        """Remember what happened since the last period; only when stopped."""
        self._loop.look()

    @property
    def observations(self) -> list[Observation]:
        """What was observed in the steps that are held."""
        return [step.observation for step in self.steps if step.observation is not None]

    def summary(self) -> RunSummary:
        """What it came to so far."""
        return self.steps.summary(
            self._max_latency_s, self._settings.executors_min, self._settings.executors_max,
            self._share,
        )  # fmt: skip

    def _stepped(self, step: Step) -> None:
        self.steps.append(step)
        if self._on_step is not None:
            self._on_step(step)

    def _died(self, why: str) -> None:
        self._history.failed(FailureRecord(self._clock.now_s(), "loop", f"restarted: {why}"))
