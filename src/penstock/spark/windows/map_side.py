"""What happens to rows before they are shuffled: partials per pane, cut into buckets of keys.

A bucket is what one call of the stateful step works on. Its partials travel as one value, so that
Spark moves a few rows instead of one per key and pane.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from penstock.model.observation import Ints
from penstock.routing.hashing import key_hashes
from penstock.spark.windows import partials
from penstock.spark.windows.kernels import Kernel
from penstock.spark.windows.partials import Partials
from penstock.spark.windows.shape import WindowShape, windows_of
from penstock.spark.windows.user import Where

CHUNK_ROWS = 1_000_000
SCHEMA = "bucket INT, expires BIGINT, lane INT, content BINARY"
_ARROW = pa.schema(
    [
        ("bucket", pa.int32()),
        ("expires", pa.int64()),
        ("lane", pa.int32()),
        ("content", pa.binary()),
    ]
)
_NEVER = 2**62  # microseconds; far beyond any watermark


@dataclass(frozen=True)
class PaneLane:
    """A function for mapInArrow: rows in, buckets of pane partials out.

    Among them go empty rows, one for the end of every window that the rows are in. Spark drops
    those that its watermark calls late, and what is left shows the step which windows are closed.
    """

    keys: tuple[str, ...]
    shape: WindowShape
    kernels: tuple[Kernel, ...]
    buckets: tuple[int, ...]  # the value that stands for each bucket
    watermarked: bool
    where: Where

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Partials of all rows of a task."""
        found = [self._partials(rows) for rows in chunks(batches)]
        found = [part for part in found if len(part.key)]
        if not found:
            return
        whole = partials.merged(found, self.kernels, self.where)
        ends = self._ends(whole.pane) if self.watermarked else np.empty(0, dtype=np.int64)
        for bucket, part in by_bucket(whole, len(self.buckets)):
            content = [part.to_bytes(self.kernels), *([None] * len(ends))]
            yield packed(self.buckets[bucket], np.append(_NEVER, ends), 0, content)

    def _partials(self, rows: Any) -> Partials:
        rows = rows.filter(rows.column("t").is_valid()) if rows.column("t").null_count else rows
        at = rows.column("t").combine_chunks()
        at = at.chunk(0) if isinstance(at, pa.ChunkedArray) and at.num_chunks else at
        pane = self.shape.panes_of(_micros(at))
        return partials.of_rows(rows, self.keys, pane, self.kernels, self.where)

    def _ends(self, pane: Ints) -> Ints:
        panes = np.unique(pane)
        last = self.shape.last_window(panes)
        zero = np.zeros(len(panes), dtype=np.int64)
        return self.shape.end(windows_of(zero, self.shape.first_window(panes), last)[1])


@dataclass(frozen=True)
class RowLane:
    """For windows of rows: the rows themselves, cut into buckets, in the order they came."""

    keys: tuple[str, ...]
    buckets: tuple[int, ...]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        lane = context.partitionId() if context is not None else 0
        for number, rows in enumerate(chunks(batches)):
            bucket = _buckets(rows.select(list(self.keys)), len(self.buckets))
            order = np.argsort(bucket, kind="stable")
            ends = np.cumsum(np.bincount(bucket, minlength=len(self.buckets)))
            rows = rows.take(pa.array(order)).combine_chunks()
            for name, start, end in zip(self.buckets, np.append(0, ends), ends, strict=False):
                if end > start:
                    content = _table_bytes(rows.slice(start, end - start), number)
                    yield packed(name, np.array([_NEVER]), lane, [content])


def by_bucket(whole: Partials, buckets: int) -> Iterator[tuple[int, Partials]]:
    """The entries of each bucket that has any."""
    bucket = _buckets(whole.keys, buckets)
    of_entry = bucket[whole.key]
    order = np.argsort(of_entry, kind="stable")
    ends = np.cumsum(np.bincount(of_entry, minlength=buckets))
    for number, (start, end) in enumerate(zip(np.append(0, ends), ends, strict=False)):
        if end > start:
            yield number, whole.of_entries(order[start:end]).used_keys()


def packed(bucket: int, expires: Ints, lane: int, content: Sequence[bytes | None]) -> Any:
    """Rows for the shuffle."""
    count = len(expires)
    columns = [
        pa.array(np.full(count, bucket, dtype=np.int32)),
        pa.array(expires),
        pa.array(np.full(count, lane, dtype=np.int32)),
        pa.array(content, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_ARROW)


def chunks(batches: Iterable[Any], rows: int = CHUNK_ROWS) -> Iterator[Any]:
    """Arrow tables of about so many rows; the batches Spark sends are too small to work on."""
    held: list[Any] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        if count >= rows:
            yield pa.Table.from_batches(held).combine_chunks()
            held, count = [], 0
    if count:
        yield pa.Table.from_batches(held).combine_chunks()


def _buckets(keys: Any, buckets: int) -> Ints:
    columns = [keys.column(name) for name in keys.column_names]
    return (key_hashes(*columns) % np.uint64(buckets)).astype(np.int64)


def _micros(at: Any) -> Ints:
    return np.asarray(at.view(pa.int64()).to_numpy(zero_copy_only=False))


def _table_bytes(rows: Any, number: int) -> bytes:
    sink = pa.BufferOutputStream()
    rows = rows.replace_schema_metadata({"number": str(number)})
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue().to_pybytes())
