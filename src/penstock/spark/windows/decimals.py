"""Sums of decimals, exactly: 128-bit numbers added as four columns of 32 bits each."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import PenstockError
from penstock.model.observation import Ints
from penstock.spark.windows.kernels import OfColumn, State, limbs_of, with_values
from penstock.spark.windows.reducing import by_group, differences

_MASK = 0xFFFFFFFF
_EXACT = Context(prec=120, rounding=ROUND_HALF_UP)


@dataclass(frozen=True)
class DecimalSum(OfColumn):
    """The sum of decimals of one scale; null counts as nothing."""

    def of_rows(self, columns: Sequence[Any], group: Ints, groups: int) -> State:
        column, group = with_values(columns[0], group)
        low, high = limbs_of(column)
        parts = (low & _MASK, (low >> 32) & _MASK, high & _MASK, high >> 32)
        return self.of_states(parts, group, groups)

    def of_states(self, state: State, group: Ints, groups: int) -> State:
        return _carried([by_group(np.add, part, group, groups, 0) for part in state])

    def of_ranges(self, state: State, low: Ints, high: Ints) -> State:
        return _carried([differences(part, low, high) for part in state])

    def to_arrow(self, state: State) -> list[Any]:
        return [pa.array(part) for part in state]

    def from_arrow(self, columns: list[Any]) -> State:
        return tuple(column.to_numpy() for column in columns)


def _carried(parts: list[NDArray[np.int64]]) -> State:
    """Each part but the last within 32 bits, so that adding many never leaves 64."""
    for place in range(3):
        parts[place + 1] = parts[place + 1] + (parts[place] >> 32)
        parts[place] = parts[place] & _MASK
    return tuple(parts)


def total(state: State, valid: NDArray[np.bool_], kind: Any, ansi: bool) -> Any:
    """The sums as decimals of a type; beyond it an error, or null where Spark is not ANSI."""
    whole = _integers(state)
    most = 10**kind.precision
    return _decimals(
        [None if not there else number for number, there in zip(whole, valid, strict=True)],
        kind, most, ansi,
    )  # fmt: skip


def mean(state: State, count: NDArray[np.int64], scale: int, kind: Any, ansi: bool) -> Any:
    """Sums over counts, rounded half up to the scale of the type; `scale` is the sums' own."""
    factor = 10 ** (kind.scale - scale)
    pairs = zip(_integers(state), count.tolist(), strict=True)
    means = [_divided(number * factor, rows) for number, rows in pairs]
    return _decimals(means, kind, 10**kind.precision, ansi)


def _integers(state: State) -> list[int]:
    low, second, third, high = (part.tolist() for part in state)
    return [
        a + (b << 32) + (c << 64) + (d << 96)
        for a, b, c, d in zip(low, second, third, high, strict=True)
    ]


def _divided(number: int, count: int) -> int | None:
    if count == 0:
        return None
    quotient, rest = divmod(abs(number), count)
    quotient += 2 * rest >= count
    return -quotient if number < 0 else quotient


def _decimals(numbers: list[int | None], kind: Any, most: int, ansi: bool) -> Any:
    found = []
    for number in numbers:
        if number is not None and abs(number) >= most:
            if ansi:
                raise PenstockError(
                    f"a sum of decimals is beyond {kind} (NUMERIC_VALUE_OUT_OF_RANGE); cast the "
                    "column to a smaller scale."
                )
            number = None
        found.append(None if number is None else _EXACT.create_decimal(number).scaleb(-kind.scale))
    return pa.array(found, kind)
