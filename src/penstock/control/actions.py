"""What the loop may ask of a cluster, and what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class SetExecutors:
    """Bring the number of executors to `total`; surplus ones are drained, not cut off.

    `leaving` names those to drain first; where it names too few, the youngest go.
    """

    NAME: ClassVar[str] = "executors"  # as in Actuator.unavailable() and in the history

    total: int
    leaving: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"executors -> {self.total}"


@dataclass(frozen=True)
class SetParallelism:
    """Give each component so many processors of its own (components run apart)."""

    NAME: ClassVar[str] = "parallelism"

    parallelism: Mapping[str, int]

    def __str__(self) -> str:
        given = ", ".join(f"{name} {count}" for name, count in self.parallelism.items())
        return f"processors -> {given}"


@dataclass(frozen=True)
class Move:
    """One key group of a component to a node."""

    component: str
    key_group: int
    node: str


@dataclass(frozen=True)
class MoveKeyGroups:
    """Let key groups live on other nodes from the next batch on."""

    NAME: ClassVar[str] = "key_groups"

    moves: tuple[Move, ...]

    def __str__(self) -> str:
        return f"{len(self.moves)} key groups move"


@dataclass(frozen=True)
class UseVariants:
    """Let these operators, and no others, run in their cheaper form from the next batch on."""

    NAME: ClassVar[str] = "variants"

    operators: tuple[str, ...]

    def __str__(self) -> str:
        return f"cheaper form -> {', '.join(self.operators) or 'none'}"


@dataclass(frozen=True)
class UseForms:
    """Let these operators run in these of their equivalent forms, the others as declared."""

    NAME: ClassVar[str] = "forms"

    forms: Mapping[str, str]

    def __str__(self) -> str:
        named = ", ".join(f"{operator} {form}" for operator, form in self.forms.items())
        return f"forms -> {named or 'as declared'}"


@dataclass(frozen=True)
class ShedLoad:
    """Let sources drop this share of their rows, chosen by chance, from the next batch on."""

    NAME: ClassVar[str] = "shedding"

    share: float

    def __str__(self) -> str:
        return f"shed -> {self.share:.0%} of the rows"


@dataclass(frozen=True)
class SetInterval:
    """Let sources start a batch at most this often, from the next batch on; 0: back to back."""

    NAME: ClassVar[str] = "interval"

    seconds: float

    def __str__(self) -> str:
        return f"batch interval -> {self.seconds:.3g} s"


@dataclass(frozen=True)
class SetRouteTasks:
    """Let routed sources deal their rows to so many tasks each, from the next batch on."""

    NAME: ClassVar[str] = "route_tasks"

    tasks: Mapping[str, int]

    def __str__(self) -> str:
        return f"route tasks -> {', '.join(f'{name} {n}' for name, n in self.tasks.items())}"


Action = (
    SetExecutors
    | SetParallelism
    | MoveKeyGroups
    | UseVariants
    | UseForms
    | ShedLoad
    | SetInterval
    | SetRouteTasks
)


@dataclass(frozen=True)
class MigrationCost:
    """What moving key groups cost, as measured in the batch that did it."""

    key_groups: int
    state_bytes: float
    load_s: float  # spent by tasks on loading state
    delay_s: float  # by which the batch took longer than its neighbours


@dataclass(frozen=True)
class Outcome:
    """What came of an action, and what it cost."""

    action: Action
    done: bool
    detail: str
    took_s: float = 0.0
    migration: MigrationCost | None = None
