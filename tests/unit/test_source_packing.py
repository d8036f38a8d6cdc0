"""Packs of rows as a lane sends them: nothing but another shape."""

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructType,
)

from penstock.spark.measure.progress import _rows
from penstock.spark.sources.packing import (
    MISSING,
    PACK_BYTES,
    PACK_ROWS,
    packed_schema,
    packs,
    rows_schema,
)

ROWS = (
    StructType()
    .add("seq", LongType(), nullable=False)
    .add("a b", StringType())
    .add("marks", ArrayType(IntegerType()))
)


@pytest.mark.parametrize("rows", [1, PACK_ROWS, 3 * PACK_ROWS + 5])
def test_rows_are_all_there_in_order(rows: int) -> None:
    columns = [
        pa.array(range(rows), pa.int64()),
        pa.array([None if row % 3 else str(row) for row in range(rows)]),
        pa.array([[row, None] if row % 2 else None for row in range(rows)], pa.list_(pa.int32())),
    ]
    plain = to_arrow_schema(ROWS, timezone="UTC")
    batch = pa.RecordBatch.from_arrays(
        [column.cast(field.type) for column, field in zip(columns, plain, strict=True)],
        schema=plain,
    )
    schema = packed_schema(ROWS)
    assert rows_schema(schema) == ROWS
    halves = [batch.slice(0, rows // 2), batch.slice(rows // 2)]
    found = list(packs(iter(halves), schema))
    assert all(pack.schema.equals(to_arrow_schema(schema, timezone="UTC")) for pack in found)
    for name in plain.names:
        lists = [values for pack in found for values in pack[name].to_pylist()]
        assert all(len(values) <= PACK_ROWS for values in lists)
        assert [value for values in lists for value in values] == batch[name].to_pylist()


def test_numbers_cross_without_nulls_and_what_is_missing_beside_them() -> None:
    rows = StructType().add("value", DoubleType()).add("full", LongType()).add("d", DecimalType())
    schema = packed_schema(rows)
    assert rows_schema(schema) == rows
    assert schema.names == ["value", MISSING + "value", "full", MISSING + "full", "d"]
    values = [None if row % 5 == 1 else row / 2 for row in range(2 * PACK_ROWS)]
    batch = pa.RecordBatch.from_arrays(
        [pa.array(values), pa.array(range(len(values))), pa.nulls(len(values), pa.decimal128(10))],
        schema=to_arrow_schema(rows),
    ).slice(3)
    (found,) = packs(iter([batch]), schema)
    sent, missing = found["value"].flatten(), found[MISSING + "value"].flatten()
    assert sent.null_count == 0
    received = zip(sent.to_pylist(), missing.to_pylist(), strict=True)
    assert [None if gone else value for value, gone in received] == values[3:]
    assert found["full"].flatten().to_pylist() == list(range(3, len(values)))
    assert found[MISSING + "full"].to_pylist() == [None] * found.num_rows
    assert found["d"].flatten().null_count == len(values) - 3


def test_long_rows_make_small_packs() -> None:
    texts = pa.array(["x" * (PACK_BYTES // 4)] * 40)
    schema = StructType().add("text", StringType())
    plain = pa.RecordBatch.from_arrays([texts], schema=to_arrow_schema(schema))
    (found,) = packs(iter([plain]), packed_schema(schema))
    lengths = found["text"].value_lengths().to_pylist()
    assert sum(lengths) == 40
    assert max(lengths) <= 4


def test_rows_in_packs_are_counted_as_rows() -> None:
    start, end = {"seq": 1, "packed": True, "rows": 7}, {"seq": 2, "packed": True, "rows": 900}
    assert _rows({"numInputRows": 2, "startOffset": start, "endOffset": end}) == 900
    assert _rows({"numInputRows": 0, "startOffset": end, "endOffset": end}) == 0
    assert _rows({"numInputRows": 5, "startOffset": None, "endOffset": {"seq": 1}}) == 5
