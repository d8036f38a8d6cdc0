"""What both stateful steps keep and give: state and rows as bytes of Arrow.

pandas would change integers with nulls into floats, and Spark would handle one row per key and
window twice otherwise. Key columns are kept as small integers.
"""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import PenstockError
from penstock.model.observation import Ints
from penstock.spark.windows.user import Where

STATE = "made_for STRING, emitted BIGINT, content BINARY"
OUTPUT = "content BINARY"


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


def of_the_same(state: Any, made_for: str, where: Where) -> tuple[int, bytes]:
    """The state, if it is one of the same query."""
    was, emitted, content = state.get
    if was != made_for:
        raise PenstockError(
            f"{where.operator}: the checkpoint was created with {was}, and now it is {made_for}; "
            "give it a new checkpoint."
        )
    return emitted, content


def renumbered(keys: Any, others: Any) -> Ints:
    """For each of the keys its number among the others, all of which contain it."""
    numbers, _ = numbered(pa.concat_tables([others, keys]))
    place = np.empty(others.num_rows, dtype=np.int64)
    place[numbers[: others.num_rows]] = np.arange(others.num_rows)
    return place[numbers[others.num_rows :]]


def packed(rows: Any) -> pd.DataFrame:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return pd.DataFrame({"content": [sink.getvalue().to_pybytes()]})
