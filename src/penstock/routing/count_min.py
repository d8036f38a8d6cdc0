"""The count-min sketch (Cormode and Muthukrishnan 2005), as OSG uses it.

Kotto-Kombi 2018, ch. 6 s. 4.1.

DataSketches has one too, but it takes one item a call; this one takes columns.
"""

import math
from dataclasses import dataclass

import numpy as np

from penstock.errors import InvalidInput
from penstock.model.observation import Floats, Ints
from penstock.routing.hashing import Hashes

_PRIME = np.uint64(2**31 - 1)
_TO_31_BITS = np.uint64(33)


@dataclass(frozen=True)
class CountMinShape:
    """Sizes and hash functions: an estimate is at most `error` of all weight too large, with
    probability at least 1 - `failure`.

    ceil(ln(1 / failure)) rows of ceil(e / error) columns; row i has the 2-universal function
    h_i(x) = ((a_i x + b_i) mod p) mod columns (Carter and Wegman 1979), p = 2**31 - 1.
    """

    error: float = 0.05
    failure: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1e-6 <= self.error < 1:
            raise InvalidInput(f"error is {self.error}; give 0.000001 to 1.")
        if not 1e-9 <= self.failure < 1:
            raise InvalidInput(f"failure is {self.failure}; give 1e-9 to 1.")

    @property
    def rows(self) -> int:
        """Independent hash functions."""
        return max(1, math.ceil(math.log(1 / self.failure)))

    @property
    def columns(self) -> int:
        """Cells of a row."""
        return math.ceil(math.e / self.error)

    def cells(self, hashes: Hashes) -> Ints:
        """For each row of the sketch, the cell of each key (numbered through all rows)."""
        rng = np.random.default_rng(self.seed)
        a = rng.integers(1, int(_PRIME), (self.rows, 1), dtype=np.uint64)
        b = rng.integers(0, int(_PRIME), (self.rows, 1), dtype=np.uint64)
        keys = (hashes >> _TO_31_BITS) % _PRIME
        columns = (a * keys + b) % _PRIME % np.uint64(self.columns)
        return columns.astype(np.int64) + self.columns * np.arange(self.rows)[:, None]

    def empty(self) -> Floats:
        """The cells of a sketch that has seen nothing."""
        return np.zeros(self.rows * self.columns)


DEFAULT_SHAPE = CountMinShape()  # both 0.05, as in Kotto-Kombi 2018, ch. 6 table 1


@dataclass(frozen=True)
class CountMin:
    """Weights of keys; never below the truth. Those of equal shape merge by addition."""

    shape: CountMinShape
    table: Floats

    def __post_init__(self) -> None:
        if len(self.table) != self.shape.rows * self.shape.columns:
            raise InvalidInput(
                f"a count-min table has {len(self.table)} cells; its shape has "
                f"{self.shape.rows * self.shape.columns}."
            )

    @property
    def total(self) -> float:
        """The weight of everything seen."""
        return float(self.table[: self.shape.columns].sum())

    def add(self, hashes: Hashes, weights: Floats | None = None) -> "CountMin":
        """The sketch that has also seen these rows."""
        return CountMin(self.shape, added(self.table, self.shape.cells(hashes), weights))

    def merge(self, other: "CountMin") -> "CountMin":
        """The sketch of both streams."""
        if self.shape != other.shape:
            raise InvalidInput("two count-min sketches differ in shape; only equal ones merge.")
        return CountMin(self.shape, self.table + other.table)

    def estimate(self, hashes: Hashes) -> Floats:
        """The weight of each key: the least of its cells."""
        return np.asarray(self.table[self.shape.cells(hashes)].min(axis=0))


def empty_count_min(shape: CountMinShape = DEFAULT_SHAPE) -> CountMin:
    """A sketch that has seen nothing."""
    return CountMin(shape, shape.empty())


def added(table: Floats, cells: Ints, weights: Floats | None) -> Floats:
    """The table with each key's weight (1 if not given) added to its cell of every row."""
    spread = None if weights is None else np.broadcast_to(weights, cells.shape).ravel()
    return table + np.bincount(cells.ravel(), weights=spread, minlength=len(table))
