"""What a batch makes of the orders to shed, to use cheaper forms and to keep an interval.

In the runner: `offset` is a part of the end offset of a batch, which Spark logs before the batch
runs; so a batch that is run again makes the same choice, whatever was ordered meanwhile. From there
it goes into the partitions. On executors: rows that are shed are left out, and where operators have
a cheaper form a column says which of them are to use it.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.spark.sources.control import OPTION as CONTROL
from penstock.spark.sources.control import ControlFile

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
class BatchChoices:
    """Makes the choices of one source; where nothing was ordered, everything passes as it is."""

    source: str
    operators: tuple[str, ...] = ()  # that have a cheaper form
    control: ControlFile = field(default_factory=lambda: ControlFile(None))
    _formed_s: float = -math.inf  # by the monotonic clock

    @classmethod
    def of(cls, options: Mapping[str, str], source: str) -> "BatchChoices":
        """From the options of a reader."""
        names = tuple(filter(None, options.get(OPTION, "").split(",")))
        file = options.get(CONTROL)
        return cls(source, names, ControlFile(None if file is None else Path(file)))

    @property
    def column(self) -> str:
        """The name of the column of forms."""
        return COLUMN + self.source

    def schema(self, columns: str) -> str:
        """The columns of the source, and that of the forms."""
        return f"{columns}, `{self.column}` INT" if self.operators else columns

    def waits(self) -> bool:
        """Whether the next batch has to wait for its time.

        All sources go by the machine's one clock that is never set, so that the batch of one is
        the batch of all.
        """
        interval_s = self.control.read().interval_s
        if interval_s <= 0 or time.monotonic() // interval_s != self._formed_s // interval_s:
            return False
        # Spark asks again after some milliseconds; to answer late costs less than to answer often.
        time.sleep(min(PATIENCE_S, interval_s - time.monotonic() % interval_s))
        return time.monotonic() // interval_s == self._formed_s // interval_s

    def offset(self, start: Mapping[str, Any], dropped: Callable[[float], int]) -> dict[str, Any]:
        """The choice for a batch that begins at an offset, and all rows shed until its end.

        `dropped` says how many rows of the batch a share amounts to.
        """
        self._formed_s = time.monotonic()
        orders, before = self.control.read(), start.get(OFFSET)
        cheaper = [name for name in self.operators if name in orders.cheaper]
        if before is None and not cheaper and orders.shed == 0:
            return {}  # nothing was ever chosen
        rows = int(before["shed_rows"]) if before is not None else 0
        shed_rows = rows + dropped(orders.shed)
        return {OFFSET: {"cheaper": cheaper, "shed": orders.shed, "shed_rows": shed_rows}}

    def choice(self, end: Mapping[str, Any]) -> Choice:
        """What was chosen for the batch that ends at an offset."""
        found = end.get(OFFSET)
        if found is None:
            return Choice()
        bits = sum(1 << i for i, name in enumerate(self.operators) if name in found["cheaper"])
        return Choice(float(found["shed"]), bits)

    def with_forms(self, batch: pa.RecordBatch, choice: Choice) -> pa.RecordBatch:
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
