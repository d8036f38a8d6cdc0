"""From the states of windows to the values of the aggregates, in the types Spark gives them.

Each function makes the Arrow array of one output column, with a value for each window. It names the
kernels it needs by their position; all but the states are given when the aggregates are compiled.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.spark.windows import decimals
from penstock.spark.windows.distinct import Estimator
from penstock.spark.windows.kernels import State
from penstock.spark.windows.user import UserKernel

Result = Callable[[Sequence[State]], Any]


def count(states: Sequence[State], *, rows: int) -> Any:
    """The state of a counting kernel."""
    return pa.array(states[rows][0])


def number(states: Sequence[State], *, kernel: int, rows: int, kind: Any) -> Any:
    """A sum or an extreme: null where no row had a value."""
    return _typed(states[kernel][0], states[rows][0] == 0, kind)


def mean(states: Sequence[State], *, kernel: int, rows: int) -> Any:
    """Sum over count, in doubles."""
    counted = states[rows][0]
    none = counted == 0
    return pa.array(states[kernel][0] / np.where(none, 1, counted), mask=none)


def decimal_total(states: Sequence[State], *, kernel: int, rows: int, kind: Any, ansi: bool) -> Any:
    """The sum of decimals."""
    return decimals.total(states[kernel], states[rows][0] > 0, kind, ansi)


def decimal_mean(
    states: Sequence[State], *, kernel: int, rows: int, scale: int, kind: Any, ansi: bool
) -> Any:
    """The mean of decimals; `scale` is that of the column."""
    return decimals.mean(states[kernel], states[rows][0], scale, kind, ansi)


def ranked(states: Sequence[State], *, kernel: int) -> Any:
    """The state of a RankedExtreme."""
    return states[kernel][0]


def distinct(states: Sequence[State], *, kernel: int, estimator: Estimator) -> Any:
    """The estimate of the registers."""
    return pa.array(estimator.estimate(states[kernel][0]))


def user(states: Sequence[State], *, kernel: int, of: UserKernel) -> Any:
    """What the user's result() makes of the state."""
    return of.results(states[kernel])


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
