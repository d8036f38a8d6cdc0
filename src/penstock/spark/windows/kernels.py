"""What is kept of the rows of a key in a pane, and how it becomes that of a window.

A kernel keeps one state per group, as columns. Counts, sums and extremes of numbers are here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.errors import PenstockError
from penstock.model.observation import Ints
from penstock.spark.windows.reducing import by_group, differences, over_ranges

State = tuple[Any, ...]  # columns with one row per group: numpy arrays or Arrow arrays
_INT64 = np.iinfo(np.int64)


class Kernel(Protocol):
    """A state per group of rows; `inputs` are the columns of the rows it looks at."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the columns."""

    def of_rows(self, columns: Sequence[Any], group: Ints, groups: int) -> State:
        """The states of groups of rows."""

    def of_states(self, state: State, group: Ints, groups: int) -> State:
        """States merged by group."""

    def of_ranges(self, state: State, low: Ints, high: Ints) -> State:
        """States merged over ranges of entries, each [low, high)."""

    def to_arrow(self, state: State) -> list[Any]:
        """Columns to be stored."""

    def from_arrow(self, columns: list[Any]) -> State:
        """The state that was stored."""


@dataclass(frozen=True)
class OfColumn:
    """A kernel that looks at one column."""

    column: str

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.column,)


class _Plain:
    """A kernel whose state is numpy columns of one kind."""

    dtype: Any = np.int64

    def to_arrow(self, state: State) -> list[Any]:
        return [pa.array(narrowed(column)) for column in state]

    def from_arrow(self, columns: list[Any]) -> State:
        return tuple(column.to_numpy().astype(self.dtype) for column in columns)


@dataclass(frozen=True)
class Rows(_Plain):
    """How many rows there are, or how many of them have a value in the column."""

    column: str | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        return () if self.column is None else (self.column,)

    def of_rows(self, columns: Sequence[Any], group: Ints, groups: int) -> State:
        if columns:
            _, group = with_values(columns[0], group)
        return (np.bincount(group, minlength=groups).astype(np.int64),)

    def of_states(self, state: State, group: Ints, groups: int) -> State:
        return (by_group(np.add, state[0], group, groups, 0),)

    def of_ranges(self, state: State, low: Ints, high: Ints) -> State:
        return (differences(state[0], low, high),)


@dataclass(frozen=True)
class FloatSum(_Plain, OfColumn):
    """The sum of doubles; null counts as nothing."""

    dtype = np.float64

    def of_rows(self, columns: Sequence[Any], group: Ints, groups: int) -> State:
        values = numbers(columns[0], 0.0)
        return (np.bincount(group, weights=values, minlength=groups),)

    def of_states(self, state: State, group: Ints, groups: int) -> State:
        return (by_group(np.add, state[0], group, groups, 0.0),)

    def of_ranges(self, state: State, low: Ints, high: Ints) -> State:
        return (over_ranges(np.add, state[0], low, high, 0.0),)


@dataclass(frozen=True)
class IntSum(_Plain, OfColumn):
    """The sum of 64-bit integers; beyond them it is an error, or wraps where Spark is not ANSI."""

    ansi: bool

    def of_rows(self, columns: Sequence[Any], group: Ints, groups: int) -> State:
        return (self._added(numbers(columns[0], 0), group, groups),)

    def of_states(self, state: State, group: Ints, groups: int) -> State:
        return (self._added(state[0], group, groups),)

    def of_ranges(self, state: State, low: Ints, high: Ints) -> State:
        if self.ansi and len(low) and not _fits(state[0], int((high - low).max())):
            wide = (state[0] >> 32, state[0] & 0xFFFFFFFF)
            self._check(*(differences(part, low, high) for part in wide))
        return (differences(state[0], low, high),)

    def _added(self, values: NDArray[np.int64], group: Ints, groups: int) -> NDArray[np.int64]:
        if self.ansi and not _fits(values, len(values)):
            wide = (values >> 32, values & 0xFFFFFFFF)
            self._check(*(by_group(np.add, part, group, groups, 0) for part in wide))
        return by_group(np.add, values, group, groups, 0)

    def _check(self, upper: NDArray[np.int64], lower: NDArray[np.int64]) -> None:
        """The sum is upper * 2**32 + lower; its upper half must be one of 32 bits."""
        upper = upper + (lower >> 32)
        if len(upper) and (upper.min() < -(2**31) or upper.max() >= 2**31):
            raise PenstockError(
                f"the sum of {self.column} is beyond a BIGINT (ARITHMETIC_OVERFLOW); cast it to a "
                "decimal or a double, or set spark.sql.ansi.enabled to false to let it wrap."
            )


@dataclass(frozen=True)
class Extreme(_Plain, OfColumn):
    """The least or greatest number; NaN is greater than any other, as in Spark."""

    greatest: bool
    kind: str  # numpy's name of the type

    @property
    def dtype(self) -> Any:
        return np.dtype(self.kind)

    @property
    def _op(self) -> Any:
        return np.maximum if self.greatest else np.fmin

    @property
    def _start(self) -> Any:
        if self.dtype.kind == "f":
            return -np.inf if self.greatest else np.nan  # fmin passes over NaN
        info = np.iinfo(self.dtype)
        return info.min if self.greatest else info.max

    def of_rows(self, columns: Sequence[Any], group: Ints, groups: int) -> State:
        column, group = with_values(columns[0], group)
        values = as_numbers(column).astype(self.dtype, copy=False)
        return (by_group(self._op, values, group, groups, self._start),)

    def of_states(self, state: State, group: Ints, groups: int) -> State:
        return (by_group(self._op, state[0], group, groups, self._start),)

    def of_ranges(self, state: State, low: Ints, high: Ints) -> State:
        return (over_ranges(self._op, state[0], low, high, self._start),)


def with_values(column: Any, group: Ints) -> tuple[Any, Ints]:
    """The rows that have a value, and their groups."""
    if not column.null_count:
        return column, group
    return pc.drop_null(column), group[column.is_valid().to_numpy(zero_copy_only=False)]


def numbers(column: Any, null: Any) -> NDArray[Any]:
    """The values of a column of numbers, with `null` where there is none."""
    filled = column.fill_null(null) if column.null_count else column
    return np.asarray(filled.to_numpy(zero_copy_only=False))


def as_numbers(column: Any) -> NDArray[Any]:
    """Numbers in the order of the values: of dates, times and decimals up to 18 digits as well."""
    kind = column.type
    if pa.types.is_decimal(kind):
        return np.asarray(limbs_of(column)[0])
    if pa.types.is_temporal(kind):
        column = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    elif pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    return np.asarray(column.to_numpy(zero_copy_only=False))


def limbs_of(column: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Low and high 64 bits of 128-bit decimals."""
    buffer = column.buffers()[1]
    if buffer is None:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    words = np.frombuffer(buffer, dtype=np.int64)
    words = words[2 * column.offset : 2 * (column.offset + len(column))]
    return words[0::2], words[1::2]


def narrowed(column: NDArray[Any]) -> NDArray[Any]:
    """The same integers in fewer bytes, where they fit."""
    if column.dtype.kind != "i" or len(column) == 0:
        return column
    low, high = int(column.min()), int(column.max())
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return column.astype(kind)
    return column


def _fits(values: NDArray[np.int64], times: int) -> bool:
    """Whether no sum of so many of the values can leave 64 bits."""
    if len(values) == 0:
        return True
    return max(-int(values.min()), int(values.max())) * times <= _INT64.max
