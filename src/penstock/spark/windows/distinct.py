"""Approximate numbers of distinct values, equal to Spark's approx_count_distinct.

HyperLogLog++ (Heule, Nunkesser and Hall 2013) over the 64-bit hashes that Spark's own xxhash64
makes of the values, with Spark's precision. So the registers are those of Spark's sketch, and with
the bias tables of the running Spark the estimates are the same numbers, not merely close ones.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.model.observation import Floats, Ints
from penstock.spark.windows.kernels import OfColumn, State, with_values
from penstock.spark.windows.reducing import over_ranges

PRECISION = math.ceil(2 * math.log2(1.106 / 0.05))  # for Spark's default relative deviation
REGISTERS = 2**PRECISION
_NEIGHBOURS = 6


@dataclass(frozen=True)
class Registers(OfColumn):
    """For each group the greatest number of leading zeros seen by each register."""

    def of_rows(self, columns: Sequence[Any], group: Ints, groups: int) -> State:
        column, group = with_values(columns[0], group)
        hashes = column.to_numpy(zero_copy_only=False).view(np.uint64)
        register = (hashes >> np.uint64(64 - PRECISION)).astype(np.int64)
        found = np.zeros(groups * REGISTERS, dtype=np.uint8)
        np.maximum.at(found, group * REGISTERS + register, _ranks(hashes))
        return (found.reshape(groups, REGISTERS),)

    def of_states(self, state: State, group: Ints, groups: int) -> State:
        found = np.zeros((groups, REGISTERS), dtype=np.uint8)
        order = np.argsort(group, kind="stable")
        if len(order):
            ordered = group[order]
            starts = np.flatnonzero(np.diff(ordered, prepend=-1))
            found[ordered[starts]] = np.maximum.reduceat(state[0][order], starts, axis=0)
        return (found,)

    def of_ranges(self, state: State, low: Ints, high: Ints) -> State:
        return (over_ranges(np.maximum, state[0], low, high, 0),)

    def to_arrow(self, state: State) -> list[Any]:
        """Only registers that are set: a group of few values takes few bytes."""
        values = np.ascontiguousarray(state[0])
        entry, register = np.nonzero(values)
        ends = np.cumsum(np.bincount(entry, minlength=len(values)))
        offsets = pa.array(np.append(0, ends).astype(np.int32))
        set_at = pa.ListArray.from_arrays(offsets, pa.array(register.astype(np.int16)))
        ranks = pa.ListArray.from_arrays(offsets, pa.array(values[entry, register]))
        return [set_at, ranks]

    def from_arrow(self, columns: list[Any]) -> State:
        set_at, ranks = columns
        values = np.zeros((len(set_at), REGISTERS), dtype=np.uint8)
        lengths = np.diff(set_at.offsets.to_numpy())
        entry = np.repeat(np.arange(len(set_at)), lengths)
        values[entry, set_at.flatten().to_numpy()] = ranks.flatten().to_numpy()
        return (values,)


def _ranks(hashes: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """One more than the leading zeros of what follows the register's number."""
    rest = (hashes << np.uint64(PRECISION)) | np.uint64(1 << (PRECISION - 1))
    upper = (rest >> np.uint64(32)).astype(np.float64)
    lower = (rest & np.uint64(0xFFFFFFFF)).astype(np.float64)
    # frexp's exponent is the number of bits, exact for 32 of them.
    bits = np.where(upper > 0, np.frexp(upper)[1] + 32, np.frexp(lower)[1])
    return np.asarray(65 - bits, dtype=np.uint8)


@dataclass(frozen=True)
class Estimator:
    """Spark's tables for one precision: where linear counting ends, raw estimates, their bias."""

    threshold: float
    raw: Floats
    bias: Floats

    def estimate(self, registers: NDArray[np.uint8]) -> Ints:
        """The number of distinct values of each row of registers."""
        inverse = np.ldexp(1.0, -registers.astype(np.int64)).sum(axis=1)
        zeros = (registers == 0).sum(axis=1)
        alpha = 0.7213 / (1.0 + 1.079 / REGISTERS)
        raw = alpha * REGISTERS * REGISTERS / inverse
        corrected = np.where(raw < 5.0 * REGISTERS, raw - self._bias_of(raw), raw)
        linear = REGISTERS * np.log(REGISTERS / np.maximum(zeros, 1))
        few = (zeros > 0) & ((linear <= self.threshold) | (raw <= 2.5 * REGISTERS))
        # Java rounds half up, and so does floor of a half more.
        return np.asarray(np.floor(np.where(few, linear, corrected) + 0.5), dtype=np.int64)

    def _bias_of(self, raw: Floats) -> Floats:
        """The mean bias of the six nearest raw estimates of the table."""
        size = len(self.raw)
        low = np.maximum(np.searchsorted(self.raw, raw) - _NEIGHBOURS + 1, 0)
        low = np.minimum(low, size - 1)
        high = np.minimum(low + _NEIGHBOURS, size)
        for _ in range(size):
            reach = np.minimum(high, size - 1)
            nearer = (raw - self.raw[reach]) ** 2 < (raw - self.raw[low]) ** 2
            moved = (high < size) & nearer
            if not moved.any():
                break
            low, high = low + moved, high + moved
        total = np.append(0.0, np.cumsum(self.bias))
        return np.asarray((total[high] - total[low]) / (high - low))
