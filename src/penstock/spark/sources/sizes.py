"""Record batches of a size that crosses well from a Python worker to Spark."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

# A batch costs as much as some thousand rows on both sides; one much larger than the processor's
# cache is read from memory again and again.
LEAST_ROWS = 8_192
MOST_BYTES = 1 << 19
ALIGNED_ROWS = 64  # slices that begin there are sent without their bitmaps being shifted


def well_sized(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in the same order: small batches together, large ones in slices."""
    small: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if batch.num_rows >= LEAST_ROWS:
            yield from _together(small)
            small, rows = [], 0
            yield from _slices(batch)
            continue
        small.append(batch)
        rows += batch.num_rows
        if rows >= LEAST_ROWS:
            yield from _together(small)
            small, rows = [], 0
    yield from _together(small)


def _together(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if batches:
        yield batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    pieces = -(-batch.nbytes // MOST_BYTES)
    if pieces <= 1:
        yield batch
        return
    rows = max(-(-batch.num_rows // pieces), LEAST_ROWS)
    rows = -(-rows // ALIGNED_ROWS) * ALIGNED_ROWS
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)
