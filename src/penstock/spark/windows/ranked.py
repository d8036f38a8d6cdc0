"""Least and greatest of values that are no numbers, such as text, by their ranks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.observation import Ints
from penstock.spark.windows.kernels import OfColumn, State
from penstock.spark.windows.reducing import Column, by_group, over_ranges


@dataclass(frozen=True)
class RankedExtreme(OfColumn):
    """The least or greatest value of any type Arrow can sort; text by its bytes, as in Spark."""

    greatest: bool

    def of_rows(self, columns: Sequence[Any], group: Ints, groups: int) -> State:
        return self.of_states((columns[0],), group, groups)

    def of_states(self, state: State, group: Ints, groups: int) -> State:
        rank, ordered, none = self._ranked(state[0])
        return (_valued(by_group(self._op, rank, group, groups, none), none, ordered),)

    def of_ranges(self, state: State, low: Ints, high: Ints) -> State:
        rank, ordered, none = self._ranked(state[0])
        return (_valued(over_ranges(self._op, rank, low, high, none), none, ordered),)

    @property
    def _op(self) -> Any:
        return np.maximum if self.greatest else np.minimum

    def _ranked(self, values: Any) -> tuple[Column, Any, int]:
        """Ranks of the values, the values by rank, and the rank of a null, which never wins."""
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        encoded = values.dictionary_encode()
        order = pc.sort_indices(encoded.dictionary).to_numpy()
        none = -1 if self.greatest else len(order)
        rank = np.empty(len(order) + 1, dtype=np.int64)
        rank[order] = np.arange(len(order))
        rank[-1] = none
        places = encoded.indices.cast(pa.int64()).fill_null(len(order)).to_numpy()
        return rank[places], encoded.dictionary.take(pa.array(order)), none

    def to_arrow(self, state: State) -> list[Any]:
        return list(state)

    def from_arrow(self, columns: list[Any]) -> State:
        return tuple(columns)


def _valued(rank: Column, none: int, ordered: Any) -> Any:
    missing = rank == none
    return ordered.take(pa.array(np.where(missing, 0, rank), mask=missing))
