"""The last hop: windows as bytes become rows of the schema the user sees."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from penstock.spark.windows.shape import WindowShape

_ROWS = 50_000


class Output:
    """A function for mapInArrow: one row per bucket in, one row per window out."""

    def __init__(self, schema: StructType, keys: tuple[str, ...], shape: WindowShape) -> None:
        self.schema = schema
        self._arrow = to_arrow_schema(schema, timezone="UTC")
        self._keys = keys
        self._shape = shape

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Rows of all windows of a task."""
        for batch in batches:
            for content in batch.column(0):
                table = pa.ipc.open_stream(content.as_buffer()).read_all()
                yield from self._rows(table).to_batches(max_chunksize=_ROWS)

    def _rows(self, found: Any) -> Any:
        names = self._arrow.names
        window = names[len(self._keys)]
        columns = [found.column(name) for name in self._keys]
        columns.append(self._windows(found.column("window").to_numpy(), self._arrow.field(window)))
        columns += [found.column(name) for name in names[len(self._keys) + 1 :]]
        typed = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip(columns, self._arrow, strict=True)
        ]
        return pa.Table.from_arrays(typed, schema=self._arrow)

    def _windows(self, number: Any, field: Any) -> Any:
        kind = field.type.field("start").type
        bounds = [
            np.asarray(bound) for bound in (self._shape.start(number), self._shape.end(number))
        ]
        return pa.StructArray.from_arrays(
            [pa.array(bound).view(kind) for bound in bounds], fields=list(field.type)
        )
