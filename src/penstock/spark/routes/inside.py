"""Routes inside a query: the rows of an operator that stands behind a shuffle, dealt by cost.

A source's lanes write routes by the table that their batch's offset names. Behind a shuffle there
is no offset, so the driver names the table of a batch in a file, before the batch's first job. And
there rows come in any order, another one when a task is run again; a task's rows are put in an
order of their own first, so that every run of it deals them alike. No row is lost or doubled then,
whichever tasks Spark repeats.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, IntegerType, MapType, StructType, VariantType

from penstock.errors import InvalidTopology
from penstock.model.route import Route
from penstock.routing.hashing import Hashes, key_hashes
from penstock.spark.routes.exchange import RouteExchange
from penstock.spark.routes.frames import obeyed
from penstock.spark.routes.method import COLUMN, PROPERTY
from penstock.spark.routes.reading import LaneRouter

METHODS = ("osg", "hash", "round-robin")
BATCH = "streaming.sql.batchId"  # a local property that Spark sets


class Dealer:
    """For `mapInArrow`: all rows of a task with the number of the task they are to go to."""

    def __init__(self, operator: str, route: Route) -> None:
        self._operator, self._route = operator, route

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the task in an order that does not depend on how they came."""
        from pyspark import TaskContext

        rows = [batch for batch in batches if batch.num_rows]
        if not rows:
            return
        context = TaskContext.get()
        folder = context.getLocalProperty(PROPERTY) if context is not None else None
        batch_id = context.getLocalProperty(BATCH) if context is not None else None
        exchange = RouteExchange(Path(folder or "") / self._operator)
        version = exchange.named(int(batch_id)) if folder and batch_id else None
        lane = context.partitionId() if context is not None else 0
        router = LaneRouter(self._route, exchange, self._operator, version, lane)
        yield router.routed(in_own_order(pa.Table.from_batches(rows)))
        router.close()


def in_own_order(rows: pa.Table) -> pa.RecordBatch:
    """The same rows whichever way they came: by a hash over all of their columns."""
    order = np.argsort(_row_hashes(rows), kind="stable")
    ordered = rows.take(pa.array(order)).combine_chunks()
    return ordered.to_batches(max_chunksize=max(1, rows.num_rows))[0]


def _row_hashes(rows: pa.Table) -> Hashes:
    flat = rows
    while any(pa.types.is_struct(field.type) for field in flat.schema):
        flat = flat.flatten()
    return key_hashes(*(column.combine_chunks() for column in flat.columns))


def dealt(frame: DataFrame, operator: str, route: Route) -> DataFrame:
    """The rows of an operator's upstream, each in the task that its route names."""
    column = COLUMN + operator
    schema = StructType([*frame.schema.fields]).add(column, IntegerType())
    return obeyed(frame.mapInArrow(Dealer(operator, route), schema), operator, route, "operator")


def check_inside(operator: str, route: Route, schema: StructType) -> None:
    """Refuse methods that need lanes, and rows that cannot be put in an order."""
    if route.method not in METHODS:
        raise InvalidTopology(
            f"operator {operator!r}: route has the method {route.method!r}; behind a source these "
            f"are possible: {', '.join(METHODS)}."
        )
    for field in schema.fields:
        if isinstance(field.dataType, ArrayType | MapType | VariantType):
            raise InvalidTopology(
                f"operator {operator!r}: route is given, but column {field.name!r} of its input is "
                f"{field.dataType.simpleString()}; only numbers, text, times and structs of them "
                "can be dealt."
            )
