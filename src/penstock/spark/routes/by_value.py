"""Routes by what Spark computes: an expression over a source's columns, or an operator's output.

Lanes cannot write such a route, so a function of the columns it goes by does, where they are. It
must give a row that is computed again the same route, or a shuffle that was read in part would
lose rows: so it goes by the table that the batch's offset names, as lanes do.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf

from penstock.errors import InvalidTopology
from penstock.model.route import AUTO, Route
from penstock.spark.handles.messages import first_line
from penstock.spark.routes.exchange import RouteExchange
from penstock.spark.routes.frames import check_types, obeyed
from penstock.spark.routes.method import COLUMN, OFFSET, PROPERTY
from penstock.spark.routes.reading import LaneRouter
from penstock.spark.sources.offsets import by_source


def at_source(frame: DataFrame, source: str, route: Route | None) -> DataFrame:
    """The rows of a source where its route sends them, unless an operator must come first."""
    if route is None or route.after is not None or route.method == AUTO:
        return frame
    if route.in_lanes:
        return obeyed(frame, source, route)
    return routed_by_value(frame, source, route)


def routed_by_value(frame: DataFrame, source: str, route: Route) -> DataFrame:
    """Each row in the task that its route names."""
    columns = [_column(frame, source, name) for name in route.columns]
    check_types(source, route, frame.select(*columns).schema)
    folder = frame.sparkSession.sparkContext.getLocalProperty(PROPERTY) or ""
    router = _router(source, route, str(Path(folder) / source))
    column = COLUMN + source
    routed = frame.withColumn(column, router(*(columns or [F.lit(0)])))
    return routed.repartitionById(route.partitions, F.col(f"`{column}`")).drop(column)


def _column(frame: DataFrame, source: str, name: str) -> Column:
    """A column of the frame, or an expression over some."""
    if name in frame.columns:
        return F.col(f"`{name}`").alias(name)
    try:
        found = F.expr(name).alias(name)
        frame.select(found)
    except PySparkException as error:
        columns = ", ".join(frame.columns)
        raise InvalidTopology(
            f"source {source!r}: route column {name!r} is neither a column nor an expression over "
            f"columns ({first_line(error)}); columns: {columns}."
        ) from error
    return found


def _router(source: str, route: Route, folder: str) -> Any:
    """A function of Spark's, made here so that it goes to workers by value."""

    def routes(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        exchange = RouteExchange(Path(folder))
        version = table_of_batch(
            folder, context.getLocalProperty("sql.streaming.queryId") or "",
            context.getLocalProperty("streaming.sql.batchId") or "",
        )  # fmt: skip
        router = LaneRouter(route, exchange, source, version, context.partitionId())
        names = list(route.columns) or ["none"]
        for given in batches:
            arrays = list(given) if isinstance(given, tuple) else [given]
            batch = pa.RecordBatch.from_arrays(arrays, names=names)
            yield pa.array(router.routes(batch).astype(np.int32))
        router.close()

    return cast(Any, arrow_udf)(routes, "int")  # its type is for functions of one column


def table_of_batch(folder: str, query: str, batch: str) -> str | None:
    """The version of the table that a batch is routed by; None: the first one.

    `folder` is that of a source's routes, below the checkpoint of its run.
    """
    offsets = _offsets(folder, query)
    if offsets is None or not batch:
        return None
    with suppress(OSError, ValueError):
        lines = (offsets / batch).read_text(encoding="utf-8").splitlines()
        found = by_source([line for line in lines if line.startswith("{")])
        for offset in found.get(Path(folder).name, []):
            return str(offset[OFFSET]) if OFFSET in offset else None
    return None


@lru_cache(maxsize=16)
def _offsets(folder: str, query: str) -> Path | None:
    """Where Spark logs the offsets of a query, by the id that its checkpoint has."""
    for file in Path(folder).parents[2].glob("queries/*/metadata"):
        with suppress(OSError, ValueError):
            if json.loads(file.read_text(encoding="utf-8")).get("id") == query:
                return file.parent / "offsets"
    return None
