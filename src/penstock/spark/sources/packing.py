"""Rows on their way from a lane to Spark: some hundred of them as one row of arrays.

Spark takes what a Python source reads row by row through a chain of iterators, with its metrics
looked after every hundred rows; that costs more than the rows themselves. So a lane sends arrays,
which cost Arrow nothing to make, and Spark takes them apart in the loop it compiles for a query.
Order is kept. Spark's own count of input rows then counts packs: see
`penstock.spark.measure.progress`.

Spark would ask of every value of an array that may hold nulls whether it is one, which takes as
long as to copy it. So numbers cross as arrays without nulls, and which of them are null in an array
of its own, that a batch without nulls leaves out.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DateType,
    DoubleType,
    FloatType,
    IntegralType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

# A batch costs as much as some thousand rows on both sides; one much larger than the processor's
# cache is read from memory again and again.
LEAST_ROWS = 8_192
MOST_BYTES = 1 << 19
ALIGNED_ROWS = 64  # slices that begin there are sent without their bitmaps being shifted
PACK_ROWS, PACK_BYTES = 512, 1 << 17  # at most; a pack is to stay in a processor's cache
MOST_COLUMNS = 16  # with more of them values cost more than rows do, and arrays copy them twice
PLACE = "__penstock_place"
# Types of fixed width that any bits are a value of; a decimal may be too long for its type.
PLAIN = (
    IntegralType,
    FloatType,
    DoubleType,
    BooleanType,
    DateType,
    TimestampType,
    TimestampNTZType,
)
MISSING = "__penstock_missing_"  # and a column's name: which of its values are null


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


def packed_schema(rows: StructType) -> StructType:
    """The columns of packs."""
    fields = []
    for field in rows.fields:
        apart = field.nullable and isinstance(field.dataType, PLAIN)
        values = ArrayType(field.dataType, field.nullable and not apart)
        fields.append(StructField(field.name, values, False))
        if apart:
            fields.append(StructField(MISSING + field.name, ArrayType(BooleanType(), False), True))
    return StructType(fields)


def rows_schema(packs: StructType) -> StructType:
    """The columns of the rows in packs."""
    names = set(packs.names)
    fields = []
    for field in packs.fields:
        if not field.name.startswith(MISSING):
            assert isinstance(field.dataType, ArrayType)
            nullable = field.dataType.containsNull or MISSING + field.name in names
            fields.append(StructField(field.name, field.dataType.elementType, nullable))
    return StructType(fields)


def packs(batches: Iterator[pa.RecordBatch], schema: StructType) -> Iterator[pa.RecordBatch]:
    """Batches as packs of a schema, without a copy."""
    arrow = to_arrow_schema(schema, timezone="UTC")
    for batch in batches:
        rows = max(1, min(PACK_ROWS, PACK_BYTES * batch.num_rows // max(batch.nbytes, 1)))
        cuts = np.append(np.arange(0, batch.num_rows, rows), batch.num_rows)
        offsets = pa.array(cuts, pa.int32())
        columns = [_column(batch, field, offsets) for field in arrow]
        yield pa.RecordBatch.from_arrays(columns, schema=arrow)


def unpacked(frame: DataFrame) -> DataFrame:
    """The rows in packs, in their order."""
    rows = rows_schema(frame.schema)
    first, *others = frame.columns
    apart = frame.select(
        F.posexplode(_named(first)).alias(PLACE, first), *(_named(name) for name in others)
    )

    def value(field: StructField) -> Column:
        found = _named(field.name)
        if field.name != first:
            found = found[F.col(PLACE)]
        if MISSING + field.name in others:
            missing = _named(MISSING + field.name)
            found = F.when(missing.isNull() | ~missing[F.col(PLACE)], found)
        return found.alias(field.name)

    return apart.select(*(value(field) for field in rows.fields))


def _column(batch: pa.RecordBatch, field: pa.Field, offsets: pa.Array) -> pa.Array:
    """A column of packs, by its name."""
    if field.name.startswith(MISSING):
        column = batch.column(field.name.removeprefix(MISSING))
        if column.null_count == 0:
            return pa.nulls(len(offsets) - 1, field.type)
        return pa.ListArray.from_arrays(offsets, column.is_null(), type=field.type)
    column = batch.column(field.name)
    if column.null_count and not field.type.value_field.nullable:
        whole = [None, *column.buffers()[1:]]
        column = pa.Array.from_buffers(column.type, len(column), whole, 0, column.offset)
    return pa.ListArray.from_arrays(offsets, column, type=field.type)


def _named(name: str) -> Column:
    return F.col(f"`{name}`")
