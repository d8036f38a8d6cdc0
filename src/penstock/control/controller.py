"""The loop over something that runs, in a thread of its own: begun, watched, summed up, ended."""

from collections.abc import Callable

from penstock.config import Settings
from penstock.control.assembly import assemble_loop, rooms_for
from penstock.control.clock import WallClock
from penstock.control.controlled import Controlled
from penstock.control.loop_thread import LoopThread
from penstock.control.ports import History
from penstock.control.recent import RecentSteps
from penstock.control.records import FailureRecord
from penstock.control.step import Step
from penstock.control.summary import RunSummary
from penstock.model.observation import Observation

JOIN_LIMIT_S = 70.0  # an act under way may take a minute


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
        self._max_latency_s = max_latency_s
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
            self._max_latency_s, self._settings.executors_min, self._settings.executors_max
        )

    def _stepped(self, step: Step) -> None:
        self.steps.append(step)
        if self._on_step is not None:
            self._on_step(step)

    def _died(self, why: str) -> None:
        self._history.failed(FailureRecord(self._clock.now_s(), "loop", f"restarted: {why}"))
