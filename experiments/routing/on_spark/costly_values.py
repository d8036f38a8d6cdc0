"""Values that cost a task more than others: each row waits by its key.

As in Kotto-Kombi 2018, ch. 6 s. 4.2.

Alone in its file because executors import it.
"""

import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

SCHEMA = "row BIGINT, key BIGINT, value DOUBLE, at TIMESTAMP"


class CostlyValues:
    """Waits for each row: evenly from the first key's cost to the last one's."""

    def __init__(self, keys: int, least_s: float, most_s: float) -> None:
        self._costs_s = np.linspace(least_s, most_s, keys)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows as they are, later."""
        for batch in batches:
            time.sleep(float(self._costs_s[batch.column("key").to_numpy()].sum()))
            yield batch

    def mean_s(self, skew: float) -> float:
        """The mean cost of a row whose key has a frequency in proportion to 1 / rank ** skew."""
        shares = np.arange(1, len(self._costs_s) + 1) ** -skew
        return float(shares @ self._costs_s / shares.sum())
