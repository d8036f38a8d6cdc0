"""Rows on their way from a lane to Spark: some hundred of them as one row of arrays.

Spark takes what a Python source reads row by row through a chain of iterators, with its metrics
looked after every hundred rows; that costs more than the rows themselves. So a lane sends arrays,
which cost Arrow nothing to make, and Spark takes them apart in the loop it compiles for a query.
Order is kept. Spark's own count of input rows then counts packs: see `penstock.spark.progress`.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, StructField, StructType

PACK_ROWS, PACK_BYTES = 512, 1 << 17  # at most; a pack is to stay in a processor's cache
MOST_COLUMNS = 20  # with more of them values cost more than rows do, and arrays copy them twice
PLACE = "__penstock_place"


def packed_schema(rows: StructType) -> StructType:
    """The columns of packs."""
    return StructType(
        [StructField(f.name, ArrayType(f.dataType, f.nullable), False) for f in rows.fields]
    )


def rows_schema(packs: StructType) -> StructType:
    """The columns of the rows in packs."""
    fields = []
    for field in packs.fields:
        assert isinstance(field.dataType, ArrayType)
        fields.append(
            StructField(field.name, field.dataType.elementType, field.dataType.containsNull)
        )
    return StructType(fields)


def packs(batches: Iterator[pa.RecordBatch], schema: StructType) -> Iterator[pa.RecordBatch]:
    """Batches as packs of a schema, without a copy."""
    arrow = to_arrow_schema(schema, timezone="UTC")
    for batch in batches:
        rows = max(1, min(PACK_ROWS, PACK_BYTES * batch.num_rows // max(batch.nbytes, 1)))
        cuts = np.append(np.arange(0, batch.num_rows, rows), batch.num_rows)
        offsets = pa.array(cuts, pa.int32())
        columns = [
            pa.ListArray.from_arrays(offsets, column, type=field.type)
            for column, field in zip(batch.columns, arrow, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=arrow)


def unpacked(frame: DataFrame) -> DataFrame:
    """The rows in packs, in their order."""
    first, *others = (f"`{name}`" for name in frame.columns)
    names = frame.columns
    apart = frame.select(F.posexplode(first).alias(PLACE, names[0]), *others)

    def item(name: str) -> Column:
        return F.col(f"`{name}`")[F.col(PLACE)].alias(name)

    return apart.select(first, *(item(name) for name in names[1:]))
