"""The most frequent keys of a lane and period, as a sketch that merges.

Balkesen et al. 2013, s. 4.1, 6.4.4.

The sketch is the frequent-items sketch of Apache DataSketches: with 2**12 counters a count is
wrong by less than 0.1% of all rows, whatever the stream.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from datasketches import frequent_items_error_type, frequent_strings_sketch

from penstock.errors import InvalidInput
from penstock.model.observation import Floats, Ints
from penstock.routing.hashing import Column, Hashes

COUNTERS_LOG2 = 12
SAMPLED_SHARE = 1 / 512  # of the rows of a large batch; the paper samples too
LEAST_SAMPLED_ROWS = 256
_HASH_DIGITS = 16


@dataclass(frozen=True)
class KeyCounts:
    """Keys as columns, most frequent first; `total_rows` counts the rows of all other keys too."""

    labels: tuple[str, ...]
    hashes: Hashes
    counts: Floats
    total_rows: float

    def top(self, number: int) -> "KeyCounts":
        """The most frequent of these keys."""
        some = slice(0, number)
        return KeyCounts(self.labels[some], self.hashes[some], self.counts[some], self.total_rows)


class FrequentKeys:
    """Counts keys; those of several lanes are merged into the counts of all of them.

    Differs from Balkesen et al. 2013, s. 4.1: the split nodes' counts are merged, so that all use
    one table.
    """

    def __init__(self, counters_log2: int = COUNTERS_LOG2) -> None:
        self._sketch = frequent_strings_sketch(counters_log2)

    @property
    def total_rows(self) -> int:
        """Rows that were counted, or that the sampled ones stand for."""
        return int(self._sketch.total_weight)

    @property
    def error_rows(self) -> float:
        """No count is further than this from the truth (of what was sampled)."""
        return float(self._sketch.epsilon * self._sketch.total_weight)

    def add(
        self,
        hashes: Hashes,
        columns: Sequence[Column],
        rng: np.random.Generator,
        sampled_share: float = SAMPLED_SHARE,
    ) -> None:
        """Count a batch, by a sample if it is large; `columns` are the key's, for its name."""
        rows = len(hashes)
        wanted = max(int(rows * sampled_share), LEAST_SAMPLED_ROWS)
        if wanted >= rows:
            chosen, weight = np.arange(rows), 1
        else:
            chosen, weight = rng.integers(0, rows, wanted), round(rows / wanted)
        _, first, counts = np.unique(hashes[chosen], return_index=True, return_counts=True)
        places = chosen[first]
        update = self._sketch.update
        items = zip(hashes[places].tolist(), _labels(columns, places), counts.tolist(), strict=True)
        for key, label, count in items:
            update(f"{key:0{_HASH_DIGITS}x}{label}", count * weight)

    def merge(self, other: "FrequentKeys") -> None:
        """Add what another lane counted."""
        self._sketch.merge(other._sketch)

    def top(self, number: int) -> KeyCounts:
        """The most frequent keys by estimate; ties go by hash."""
        found = self._sketch.get_frequent_items(frequent_items_error_type.NO_FALSE_NEGATIVES)
        best = sorted(found, key=lambda item: (-item[1], item[0]))[:number]
        return KeyCounts(
            labels=tuple(item[0][_HASH_DIGITS:] for item in best),
            hashes=np.array([int(item[0][:_HASH_DIGITS], 16) for item in best], dtype=np.uint64),
            counts=np.array([item[1] for item in best], dtype=np.float64),
            total_rows=float(self.total_rows),
        )

    def to_bytes(self) -> bytes:
        """For the way from a lane to the driver."""
        return bytes(self._sketch.serialize())

    @classmethod
    def from_bytes(cls, content: bytes) -> "FrequentKeys":
        """The sketch that `to_bytes` wrote."""
        keys = cls()
        try:
            keys._sketch = frequent_strings_sketch.deserialize(content)
        except (RuntimeError, ValueError, IndexError) as error:
            raise InvalidInput(
                "a sketch of frequent keys cannot be read; it is damaged."
            ) from error
        return keys


def _labels(columns: Sequence[Column], places: Ints) -> list[str]:
    picked = [_picked(column, places) for column in columns]
    if len(picked) == 1:
        return [str(value) for value in picked[0]]
    return ["|".join(map(str, values)) for values in zip(*picked, strict=True)]


def _picked(column: Column, places: Ints) -> list[object]:
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return list(column.take(pa.array(places)).to_pylist())
    return list(np.asarray(column)[places].tolist())
