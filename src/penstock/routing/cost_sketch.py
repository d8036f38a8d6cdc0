"""What each value costs, learnt from completed rows by two count-min sketches.

Kotto-Kombi 2018, ch. 6 s. 4.1 (OSG, after Rivetti et al. 2016): one sketch counts occurrences, one
adds up completion times; both have the same hash functions, so a value has one cell in each row of
both.
"""

from dataclasses import dataclass

import numpy as np

from penstock.errors import InvalidInput
from penstock.model.observation import Floats, Ints
from penstock.routing.count_min import DEFAULT_SHAPE, CountMinShape, added
from penstock.routing.hashing import Hashes

_FORGOTTEN = 1e-3  # rows; a cell with less has not been met for long


@dataclass(frozen=True)
class CostSketch:
    """Occurrences and seconds of an operator's values; immutable, merges by addition."""

    shape: CountMinShape
    occurrences: Floats
    seconds: Floats

    def __post_init__(self) -> None:
        cells = self.shape.rows * self.shape.columns
        if not len(self.occurrences) == len(self.seconds) == cells:
            raise InvalidInput(f"the tables of a cost sketch must have the shape's {cells} cells.")

    @property
    def mean_s(self) -> float:
        """Mean cost of everything seen; 1 before anything was, so that rows count alike."""
        rows = float(self.occurrences[: self.shape.columns].sum())
        return float(self.seconds[: self.shape.columns].sum()) / rows if rows > 0 else 1.0

    def learn(self, hashes: Hashes, seconds: Floats) -> "CostSketch":
        """The sketch that has also seen these completed rows."""
        cells = self.shape.cells(hashes)
        return CostSketch(
            self.shape,
            added(self.occurrences, cells, None),
            added(self.seconds, cells, np.asarray(seconds, dtype=np.float64)),
        )

    def merge(self, other: "CostSketch") -> "CostSketch":
        """The sketch of what both have seen."""
        if self.shape != other.shape:
            raise InvalidInput("two cost sketches differ in shape; only equal ones merge.")
        return CostSketch(
            self.shape, self.occurrences + other.occurrences, self.seconds + other.seconds
        )

    def faded(self, kept: float) -> "CostSketch":
        """The sketch with so much of its weight: estimates stay, and what is learnt counts more."""
        occurrences = self.occurrences * kept
        seen = occurrences > _FORGOTTEN
        return CostSketch(
            self.shape, np.where(seen, occurrences, 0.0), np.where(seen, self.seconds * kept, 0.0)
        )

    def best_cells(self, hashes: Hashes) -> Ints:
        """For each value the cell with the fewest occurrences: least mixed with other values."""
        cells = self.shape.cells(hashes)
        best = self.occurrences[cells].argmin(axis=0)
        return np.asarray(cells[best, np.arange(cells.shape[1])])

    def cell_costs_s(self) -> Floats:
        """The mean cost in each cell; the mean of all where a cell is empty."""
        seen = self.occurrences > 0
        costs = np.full(len(self.occurrences), self.mean_s)
        np.divide(self.seconds, self.occurrences, out=costs, where=seen)
        return costs

    def estimate_s(self, hashes: Hashes) -> Floats:
        """Cost of a row of each value: W / F, seconds over occurrences of its best cell."""
        return self.cell_costs_s()[self.best_cells(hashes)]


def empty_cost_sketch(shape: CountMinShape = DEFAULT_SHAPE) -> CostSketch:
    """A sketch that has seen nothing."""
    return CostSketch(shape, shape.empty(), shape.empty())
