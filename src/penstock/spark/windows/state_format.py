"""What both stateful steps keep and give: state and rows as bytes of Arrow.

pandas would change integers with nulls into floats, and Spark would handle one row per key and
window twice otherwise.
"""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from penstock.errors import PenstockError
from penstock.model.observation import Ints
from penstock.spark.windows.keys import numbered
from penstock.spark.windows.user import Where

STATE = "made_for STRING, emitted BIGINT, content BINARY"
OUTPUT = "content BINARY"


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
