"""What the reader of a source needs for the last resort and for the interval of its batches.

In the runner: `offset` is a part of the end offset of a batch, which Spark logs before the batch
runs; so a batch that is run again makes the same choice, whatever was told meanwhile. From there it
goes into the partitions. On executors: rows that are shed are left out, and where operators have a
cheaper form a column says which of them are to use it.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.spark.sources.told import read_told

COLUMN = "__penstock_forms_"  # of the source; a bit for each operator that has a cheaper form
OFFSET = "resort"
OPTION = "forms"
PATIENCE_S = 0.2  # a query that is stopped waits no longer for its source


@dataclass(frozen=True)
class Choice:
    """What holds for one batch of one source."""

    shed: float = 0.0
    forms: int = 0  # bit i: the i-th of the operators is in its cheaper form


@dataclass
class ResortReading:
    """The choices of one source; without any, everything passes as it is."""

    source: str
    operators: tuple[str, ...] = ()
    told_file: str | None = None
    _formed_s: float = 0.0

    @classmethod
    def of(cls, options: Mapping[str, str], source: str) -> "ResortReading":
        """From the options of a reader."""
        names = tuple(filter(None, options.get(OPTION, "").split(",")))
        return cls(source, names, options.get("parallelism_file"))

    @property
    def column(self) -> str:
        """The name of the column of forms."""
        return COLUMN + self.source

    def schema(self, columns: str) -> str:
        """The columns of the source, and that of the forms."""
        return f"{columns}, `{self.column}` INT" if self.operators else columns

    def waits(self) -> bool:
        """Whether the next batch has to wait for its time.

        All sources go by the same clock, so that the batch of one is the batch of all.
        """
        interval_s = read_told(self.told_file).interval_s
        if interval_s <= 0 or time.time() // interval_s != self._formed_s // interval_s:
            return False
        # Spark asks again after some milliseconds; to answer late costs less than to answer often.
        time.sleep(min(PATIENCE_S, interval_s - time.time() % interval_s))
        return time.time() // interval_s == self._formed_s // interval_s

    def offset(self, start: Mapping[str, Any], dropped: Callable[[float], int]) -> dict[str, Any]:
        """The choice for a batch that begins at an offset, and all rows shed until its end.

        `dropped` tells how many rows of the batch a share amounts to.
        """
        self._formed_s = time.time()
        told, before = read_told(self.told_file), start.get(OFFSET)
        cheaper = [name for name in self.operators if name in told.cheaper]
        if before is None and not cheaper and told.shed == 0:
            return {}  # nothing was ever chosen
        rows = int(before["shed_rows"]) if before is not None else 0
        shed_rows = rows + dropped(told.shed)
        return {OFFSET: {"cheaper": cheaper, "shed": told.shed, "shed_rows": shed_rows}}

    def choice(self, end: Mapping[str, Any]) -> Choice:
        """What was chosen for the batch that ends at an offset."""
        found = end.get(OFFSET)
        if found is None:
            return Choice()
        bits = sum(1 << i for i, name in enumerate(self.operators) if name in found["cheaper"])
        return Choice(float(found["shed"]), bits)

    def marked(self, batch: pa.RecordBatch, choice: Choice) -> pa.RecordBatch:
        """The rows with the forms that are in use as the last column."""
        if not self.operators:
            return batch
        forms = pa.array(np.full(batch.num_rows, choice.forms, dtype=np.int32))
        schema = batch.schema.append(pa.field(self.column, pa.int32()))
        return pa.RecordBatch.from_arrays([*batch.columns, forms], schema=schema)


def shed_rows_at(offset: Mapping[str, Any] | None) -> int:
    """Rows that a source has shed in all, up to an offset."""
    found = (offset or {}).get(OFFSET)
    return int(found["shed_rows"]) if found is not None else 0
