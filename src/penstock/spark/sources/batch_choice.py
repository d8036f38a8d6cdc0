"""What a batch makes of the orders to shed, to use cheaper forms and to keep an interval.

In the runner: `offset` is a part of the end offset of a batch, which Spark logs before the batch
runs; so a batch that is run again makes the same choice, whatever was ordered meanwhile. From there
it goes into the partitions. On executors: rows that are shed are left out, and where operators have
a cheaper form a column says which of them are to use it.

A row is shed if a hash of its place in its stream is below the share. The place of a row never
changes, so a batch that is read again after a failure drops the same rows, and how many they are is
known without reading them. Places are counted modulo 2^64: some systems' positions use all 64 bits.
"""

import math
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.model.observation import Ints
from penstock.spark.sources.control import OPTION as CONTROL
from penstock.spark.sources.control import ControlFile

Bools = NDArray[np.bool_]
COLUMN = "__penstock_forms_"  # of the source; a bit for each other form of an operator
OFFSET = "resort"
OPTION = "forms"
PATIENCE_S = 0.2  # a query that is stopped waits no longer for its source


def seed_of(name: str) -> int:
    """A seed for a stream, so that streams are sampled independently of each other."""
    return zlib.crc32(name.encode())


def kept(first: int, count: int, share: float, seed: int) -> Bools:
    """Whether each of `count` rows from the place `first` on is kept."""
    places = np.arange(count, dtype=np.uint64) + np.uint64(first % 2**64)
    return ~_dropped(places, share, np.uint64(seed))


def dropped_rows(first: int, count: int, share: float, seed: int) -> int:
    """How many of those rows are dropped."""
    return int(count - kept(first, count, share, seed).sum()) if share > 0 else 0


def dropped_of_ranges(first: Ints, counts: Ints, share: float, seeds: Ints) -> int:
    """How many rows are dropped of many streams, each with a place, a count and a seed."""
    if share <= 0 or not len(counts):
        return 0
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    places = (np.repeat(first, counts) + within).astype(np.uint64)
    return int(_dropped(places, share, np.repeat(seeds, counts).astype(np.uint64)).sum())


def _dropped(
    place: NDArray[np.uint64], share: float, seed: NDArray[np.uint64] | np.uint64
) -> Bools:
    """The finaliser of SplitMix64 (Steele, Lea and Flood, 2014) as a number from 0 to 1."""
    with np.errstate(over="ignore"):  # arithmetic modulo 2^64 is meant
        mixed = place * np.uint64(0x9E3779B97F4A7C15) + seed * np.uint64(0xD1342543DE82EF95)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed = mixed ^ (mixed >> np.uint64(31))
    below: Bools = (mixed >> np.uint64(11)) * 2.0**-53 < share
    return below


@dataclass(frozen=True)
class Choice:
    """What holds for one batch of one source."""

    shed: float = 0.0
    forms: int = 0  # bit i: the i-th of the forms is in use


@dataclass
class BatchChoices:
    """Makes the choices of one source; where nothing was ordered, everything passes as it is."""

    source: str
    operators: tuple[str, ...] = ()  # ids of their forms: their names for the cheaper ones
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
        cheaper = [name for name in self.operators if name in (*orders.cheaper, *orders.forms)]
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
