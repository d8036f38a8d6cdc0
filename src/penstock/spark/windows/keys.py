"""Key columns as small integers."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.observation import Ints


def numbered(columns: "pa.Table") -> tuple[Ints, "pa.Table"]:
    """The number of each row's key, and the keys in order of their numbers.

    Null is a key like any other; -0.0 equals 0.0 and all NaN are one, as in Spark's GROUP BY.
    """
    columns = columns.combine_chunks()
    codes, distinct = _encoded(columns.column(0))
    if columns.num_columns == 1:
        return codes, pa.table({columns.column_names[0]: distinct})
    for name in columns.column_names[1:]:
        more, values = _encoded(columns.column(name))
        # Renumbered after each column: the product of two counts of distinct values stays small.
        codes = _renumbered(codes * max(1, len(values)) + more)
    firsts = np.empty(int(codes.max(initial=-1)) + 1, dtype=np.int64)
    firsts[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return codes, columns.take(pa.array(firsts)).combine_chunks()


def _encoded(column: "pa.ChunkedArray") -> tuple[Ints, "pa.Array"]:
    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(values, pa.ChunkedArray):  # an empty column has no chunk to combine
        values = pa.array([], values.type)
    if pa.types.is_floating(values.type):
        values = _one_zero_one_nan(values)
    encoded = values.dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices.to_numpy(), dtype=np.int64), encoded.dictionary


def _one_zero_one_nan(values: "pa.Array") -> "pa.Array":
    zero = pa.scalar(0.0, values.type)
    values = pc.if_else(pc.equal(values, zero), zero, values)
    return pc.if_else(pc.is_nan(values), pa.scalar(float("nan"), values.type), values)


def _renumbered(codes: Ints) -> Ints:
    encoded = pa.array(codes).dictionary_encode()
    return np.asarray(encoded.indices.to_numpy(), dtype=np.int64)
