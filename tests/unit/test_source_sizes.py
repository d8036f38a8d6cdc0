"""Batches as they cross to Spark: other sizes, the same rows."""

import itertools

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from penstock.spark.sources.packing import ALIGNED_ROWS, LEAST_ROWS, MOST_BYTES, well_sized

SCHEMA = pa.schema([("seq", pa.int64())])


def batches(sizes: list[int]) -> list[pa.RecordBatch]:
    ends = [sum(sizes[: place + 1]) for place in range(len(sizes))]
    return [
        pa.RecordBatch.from_arrays([pa.array(range(end - size, end), pa.int64())], schema=SCHEMA)
        for size, end in zip(sizes, ends, strict=True)
    ]


@given(st.lists(st.sampled_from([1, 7, LEAST_ROWS - 1, LEAST_ROWS, 3 * LEAST_ROWS]), max_size=9))
def test_the_same_rows_in_the_same_order(sizes: list[int]) -> None:
    found = list(well_sized(batches(sizes)))
    seqs = [seq for batch in found for seq in batch["seq"].to_pylist()]
    assert seqs == list(range(sum(sizes)))
    # Two neighbours that are both small would have been put together.
    assert all(a.num_rows + b.num_rows >= LEAST_ROWS for a, b in itertools.pairwise(found))


def test_large_ones_are_cut_where_bitmaps_are_whole() -> None:
    rows = 3 * MOST_BYTES // 8
    whole = pa.RecordBatch.from_arrays([pa.nulls(rows, pa.int64())], schema=SCHEMA)
    cut = list(well_sized([whole]))
    assert sum(batch.num_rows for batch in cut) == rows
    assert all(batch.nbytes <= MOST_BYTES * 1.1 for batch in cut)
    assert all(batch.num_rows % ALIGNED_ROWS == 0 for batch in cut[:-1])
