"""From the states of windows to the values of the aggregates, in the types Spark gives them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.spark.windows import decimals
from penstock.spark.windows.distinct import Estimator
from penstock.spark.windows.kernels import State
from penstock.spark.windows.user import UserKernel


class Result(Protocol):
    """One output column; it names the kernels it needs by their position."""

    def values(self, states: Sequence[State]) -> Any:
        """An Arrow array with a value for each window."""


@dataclass(frozen=True)
class Count:
    """The state of a counting kernel."""

    rows: int

    def values(self, states: Sequence[State]) -> Any:
        return pa.array(states[self.rows][0])


@dataclass(frozen=True)
class Number:
    """A sum or an extreme: null where no row had a value."""

    kernel: int
    rows: int
    kind: Any

    def values(self, states: Sequence[State]) -> Any:
        return _typed(states[self.kernel][0], states[self.rows][0] == 0, self.kind)


@dataclass(frozen=True)
class Mean:
    """Sum over count, in doubles."""

    kernel: int
    rows: int

    def values(self, states: Sequence[State]) -> Any:
        count = states[self.rows][0]
        none = count == 0
        return pa.array(states[self.kernel][0] / np.where(none, 1, count), mask=none)


@dataclass(frozen=True)
class DecimalTotal:
    """The sum of decimals."""

    kernel: int
    rows: int
    kind: Any
    ansi: bool

    def values(self, states: Sequence[State]) -> Any:
        return decimals.total(states[self.kernel], states[self.rows][0] > 0, self.kind, self.ansi)


@dataclass(frozen=True)
class DecimalMean:
    """The mean of decimals; `scale` is that of the column."""

    kernel: int
    rows: int
    scale: int
    kind: Any
    ansi: bool

    def values(self, states: Sequence[State]) -> Any:
        count = states[self.rows][0]
        return decimals.mean(states[self.kernel], count, self.scale, self.kind, self.ansi)


@dataclass(frozen=True)
class Ranked:
    """The state of a RankedExtreme."""

    kernel: int

    def values(self, states: Sequence[State]) -> Any:
        return states[self.kernel][0]


@dataclass(frozen=True)
class Distinct:
    """The estimate of the registers."""

    kernel: int
    estimator: Estimator

    def values(self, states: Sequence[State]) -> Any:
        return pa.array(self.estimator.estimate(states[self.kernel][0]))


@dataclass(frozen=True)
class User:
    """What the user's result() makes of the state."""

    kernel: int
    of: UserKernel

    def values(self, states: Sequence[State]) -> Any:
        return self.of.results(states[self.kernel])


def _typed(numbers: NDArray[Any], none: NDArray[np.bool_], kind: Any) -> Any:
    if pa.types.is_decimal(kind):
        words = np.empty((len(numbers), 2), dtype=np.int64)
        words[:, 0], words[:, 1] = numbers, numbers >> 63
        validity = pa.array(~none).buffers()[1]
        buffers = [validity, pa.py_buffer(words.tobytes())]
        return pa.Array.from_buffers(kind, len(numbers), buffers)
    if pa.types.is_boolean(kind):
        return pa.array(numbers > 0, mask=none)
    values = pa.array(numbers, mask=none)
    if pa.types.is_temporal(kind):
        return values.view(kind)
    return values.cast(kind)
