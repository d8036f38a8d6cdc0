"""What the loop may ask of a cluster, and what came of it."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class SetExecutors:
    """Bring the number of executors to `total`; surplus ones are drained, not cut off."""

    NAME: ClassVar[str] = "executors"  # as in Actuator.unavailable() and in the history

    total: int

    def __str__(self) -> str:
        return f"executors -> {self.total}"


Action = SetExecutors


@dataclass(frozen=True)
class Outcome:
    """What came of an action, and what it cost."""

    action: Action
    done: bool
    detail: str
    took_s: float = 0.0
