"""Executors, and the processors of components that run apart: the loop's actuator."""

import time
from collections.abc import Mapping
from typing import Protocol

from penstock.control.actions import Action, Outcome, SetParallelism
from penstock.control.ports import Actuator
from penstock.errors import PenstockError


class Divided(Protocol):
    """Components that have processors of their own."""

    def parallelism(self) -> dict[str, int]:
        """Processors that each component was given last."""

    def set_parallelism(self, wanted: Mapping[str, int]) -> None:
        """Give components other numbers; each holds from its next batch on."""


class ApartActuator:
    """Carries SetParallelism out itself and leaves the rest to whoever has the executors."""

    def __init__(self, running: Divided, executors: Actuator) -> None:
        self._running = running
        self._executors = executors

    def unavailable(self) -> Mapping[str, str]:
        """What cannot be done about executors; processors can always be set."""
        return self._executors.unavailable()

    def executors(self) -> int:
        return self._executors.executors()

    def slots_per_executor(self) -> int:
        return self._executors.slots_per_executor()

    def act(self, action: Action) -> Outcome:
        """Set the processors of each component, from its next batch on."""
        if not isinstance(action, SetParallelism):
            return self._executors.act(action)
        began_s = time.monotonic()
        before = self._running.parallelism()
        try:
            self._running.set_parallelism(action.parallelism)
        except PenstockError as reason:
            return Outcome(action, False, str(reason), time.monotonic() - began_s)
        changed = ", ".join(
            f"{name} {before[name]} -> {count}"
            for name, count in action.parallelism.items()
            if before[name] != count
        )
        detail = f"{changed or 'as before'}, from the next batch on"
        return Outcome(action, True, detail, time.monotonic() - began_s)
