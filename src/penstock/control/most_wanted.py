"""Executors that several loops share in time: there are as many as the one that wants most.

Queries of one session use all executors of it, whoever asked for them. So a bound of its own for
each needs a loop for each, and the number of executors is the largest that any of them wants.
"""

import threading
from collections.abc import Mapping

from penstock.control.actions import Action, Outcome, SetExecutors
from penstock.control.ports import Actuator
from penstock.control.step import Step


class MostWanted:
    """What each loop wants of the executors; several threads may ask."""

    def __init__(self, executors: Actuator) -> None:
        self.executors = executors
        self.lock = threading.Lock()
        self._wanted: dict[str, int] = {}

    def asked(self, name: str, step: Step) -> None:
        """What a loop wanted in a period."""
        if step.executors_wanted is not None:
            self.note(name, step.executors_wanted)

    def note(self, name: str, executors: int) -> None:
        """What a loop wants from here on."""
        self._wanted[name] = executors

    def leave(self, name: str) -> None:
        """It wants nothing more."""
        self._wanted.pop(name, None)

    def most(self) -> tuple[int, str]:
        """The largest number, and who wants it."""
        return max((executors, name) for name, executors in self._wanted.items())


class OneOfSeveral:
    """The actuator of one loop: executors change only as all loops together want it."""

    def __init__(self, name: str, shared: MostWanted, own: Actuator) -> None:
        self._name, self._shared, self._own = name, shared, own
        shared.note(name, shared.executors.executors())

    def unavailable(self) -> Mapping[str, str]:
        """As if it were alone."""
        return self._own.unavailable()

    def executors(self) -> int:
        """Executors of the session."""
        return self._shared.executors.executors()

    def slots_per_executor(self) -> int:
        """Processors of one executor."""
        return self._own.slots_per_executor()

    def act(self, action: Action) -> Outcome:
        """Executors as the loop that wants most; all else as it is."""
        if not isinstance(action, SetExecutors):
            return self._own.act(action)
        with self._shared.lock:
            self._shared.note(self._name, action.total)
            most, whose = self._shared.most()
            if most == self.executors():
                return Outcome(action, False, f"query {whose!r} needs {most} executors")
            done = self._shared.executors.act(SetExecutors(most, action.leaving))
        return Outcome(action, done.done, done.detail, done.took_s, done.migration)
