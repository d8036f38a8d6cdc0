"""A routed source as a frame: the lane's column obeyed by an exchange, and gone behind it.

Behind the exchange nobody can group by the column, so no state is ever placed by it: Spark shuffles
again, by the operator's own key, wherever rows must meet.
"""

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    AtomicType,
    IntegralType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from penstock.errors import InvalidTopology
from penstock.model.route import AUTO, Route
from penstock.spark.routes.method import COLUMN, OFFSET, PROPERTY
from penstock.spark.sources.offsets import by_source


def announce(session: SparkSession, folder: Path) -> None:
    """Say where the routes of queries that this thread starts are kept."""
    session.sparkContext.setLocalProperty(PROPERTY, str(folder))


def route_options(session: SparkSession, source: str, route: Route) -> dict[str, str]:
    """Options for the reader of a routed source; none while a route is yet to be inferred."""
    if route.method == AUTO:
        return {}
    folder = session.sparkContext.getLocalProperty(PROPERTY) or ""
    return {"route": route.to_json(), "routes_at": str(Path(folder) / source)}


def check_route(whose: str, route: Route, columns: list[str]) -> None:
    """Refuse a route by columns that its rows do not have."""
    for column in route.columns:
        if column not in columns:
            raise InvalidTopology(
                f"{whose}: route column {column!r} is not in its schema; columns: "
                f"{', '.join(columns)}."
            )


def check_types(whose: str, route: Route, schema: StructType) -> None:
    """Refuse keys that have no hash, and times that are none."""
    for name in route.columns:
        kind = schema[name].dataType
        timed = isinstance(kind, TimestampType | TimestampNTZType | IntegralType)
        if name == route.time and not timed:
            raise InvalidTopology(
                f"{whose}: route column {name!r} is of type {kind.simpleString()}; "
                "Route(time) must be a timestamp or a whole number of microseconds."
            )
        if not isinstance(kind, AtomicType):
            raise InvalidTopology(
                f"{whose}: route column {name!r} is of type {kind.simpleString()}; "
                "Route(key) must be of numbers, text, binary, booleans, dates or times."
            )


def obeyed(frame: DataFrame, name: str, route: Route, kind: str = "source") -> DataFrame:
    """Each row in the task its route names, without the column."""
    column, whose = COLUMN + name, f"{kind} {name!r}"
    check_route(whose, route, [name for name in frame.columns if name != column])
    check_types(whose, route, frame.schema)
    return frame.repartitionById(route.partitions, F.col(f"`{column}`")).drop(column)


def table_in_use(progress: Any, source: str) -> str:
    """The version of the table that a query's last batch was routed by; "" if it names none."""
    ends = [read.endOffset for read in progress.sources] if progress is not None else []
    offsets = by_source(ends).get(source)
    return str(offsets[0].get(OFFSET, "")) if offsets else ""
