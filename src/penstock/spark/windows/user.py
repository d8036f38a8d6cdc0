"""States of a user's own aggregate, and how its mistakes are reported."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.model.aggregates import UserAggregate
from penstock.model.observation import Ints
from penstock.spark.windows.kernels import State

# That a value is of another type; Arrow has failures that are not about it, such as no memory.
_OF_THE_VALUE = (TypeError, ValueError, OverflowError, pa.ArrowNotImplementedError)


class GroupError(Exception):
    """A user's function failed on one group; whoever knows the groups' keys says which key."""

    def __init__(self, group: int, said: str) -> None:
        super().__init__(said)
        self.group = group
        self.said = said


@dataclass(frozen=True)
class Where:
    """What a mistake is reported with: the operator, and the columns of its key."""

    operator: str
    by: tuple[str, ...]


@dataclass(frozen=True)
class UserKernel:
    """Keeps the user's states in a struct column; one call of a function for each group.

    `inputs` are the projected columns that the aggregate knows by its own names.
    """

    name: str
    aggregate: UserAggregate
    inputs: tuple[str, ...]
    state_type: Any  # an Arrow struct
    result_type: Any

    def of_rows(self, columns: Sequence[Any], group: Ints, groups: int) -> State:
        order = np.argsort(group, kind="stable")
        rows = pa.table(dict(zip(self.aggregate.columns, columns, strict=True)))
        rows = rows.take(pa.array(order)).combine_chunks()
        ends = np.cumsum(np.bincount(group, minlength=groups))
        states = []
        for number, (start, end) in enumerate(zip(np.append(0, ends), ends, strict=False)):
            part = rows.slice(start, end - start)
            if self.aggregate.batches == "pandas":
                part = part.to_pandas()
            empty = self._called("init", number)
            states.append(self._called("update", number, empty, part))
        return (self._stored(states, "update"),)

    def of_states(self, state: State, group: Ints, groups: int) -> State:
        merged: list[Any] = [None] * groups
        for number, one in zip(group.tolist(), state[0].to_pylist(), strict=True):
            held = merged[number]
            merged[number] = one if held is None else self._called("merge", number, held, one)
        return (self._stored(merged, "merge"),)

    def of_ranges(self, state: State, low: Ints, high: Ints) -> State:
        """Ranges of one key ascend at both ends, so each state is merged about three times."""
        entries = state[0].to_pylist()
        found = []
        queue = _MergingQueue(entries, lambda at, a, b: self._called("merge", at, a, b))
        for start, end in zip(low.tolist(), high.tolist(), strict=True):
            found.append(queue.over(start, end))
        return (pa.array(found, self.state_type),)

    def results(self, state: State) -> Any:
        """The aggregate's values."""
        values = [
            self._called("result", number, one) for number, one in enumerate(state[0].to_pylist())
        ]
        return self._typed(values, self.result_type, "result")

    def to_arrow(self, state: State) -> list[Any]:
        return list(state)

    def from_arrow(self, columns: list[Any]) -> State:
        return tuple(columns)

    def _called(self, function: str, group: int, *arguments: Any) -> Any:
        try:
            return getattr(self.aggregate, function)(*arguments)
        except Exception as error:  # the user's code may raise anything
            said = " ".join(str(error).split())
            raise GroupError(
                group, f"aggregate {self.name!r}: {function} raised {type(error).__name__}: {said}"
            ) from error

    def _stored(self, states: list[Any], function: str) -> Any:
        fields = {field.name for field in self.state_type}
        for number, state in enumerate(states):
            if not isinstance(state, dict) or set(state) != fields:
                raise GroupError(
                    number,
                    f"aggregate {self.name!r}: {function} returned {_shown(state)}; its state is a "
                    f"dict of {', '.join(field.name for field in self.state_type)}",
                )
        return self._typed(states, self.state_type, function)

    def _typed(self, values: list[Any], kind: Any, function: str) -> Any:
        try:
            return pa.array(values, kind)
        except _OF_THE_VALUE:
            for number, value in enumerate(values):
                try:
                    pa.array([value], kind)
                except _OF_THE_VALUE as error:
                    raise GroupError(
                        number,
                        f"aggregate {self.name!r}: {function} returned {_shown(value)}, which is "
                        f"not of its type {kind}",
                    ) from error
            raise


class _MergingQueue:
    """States of a range that moves forward: merged from two stacks, so nothing is subtracted."""

    def __init__(self, entries: list[Any], merge: Callable[[int, Any, Any], Any]) -> None:
        self._entries = entries
        self._merge = merge
        self._front: list[Any] = []  # merged from each entry to the end of the front, last first
        self._back: Any = None  # merged from the end of the front to `_end`
        self._start = self._end = self._turn = 0

    def over(self, start: int, end: int) -> Any:
        if start < self._start or end < self._end or start >= self._end:
            self._front, self._back = [], None
            self._start = self._turn = self._end = start
        while self._end < end:
            self._back = self._joined(self._end, self._back, self._entries[self._end])
            self._end += 1
        while self._start < start:
            if not self._front:
                self._turned()
            self._front.pop()
            self._start += 1
        if not self._front:
            self._turned()
        return self._joined(start, self._front[-1], self._back)

    def _turned(self) -> None:
        held = None
        for at in range(self._end - 1, self._start - 1, -1):
            held = self._joined(at, self._entries[at], held)
            self._front.append(held)
        self._back, self._turn = None, self._end

    def _joined(self, at: int, left: Any, right: Any) -> Any:
        if left is None or right is None:
            return right if left is None else left
        return self._merge(at, left, right)


def _shown(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."
