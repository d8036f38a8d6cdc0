"""What the reader of a streaming source needs to be routed; made from its options alone.

In the runner: `offset` is a part of the end offset of a batch that has rows, and from there its
version goes into the partitions. On executors: `routed` routes what a partition reads.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from penstock.model.observation import Ints
from penstock.model.route import Route
from penstock.spark.routes.exchange import RouteExchange
from penstock.spark.routes.method import COLUMN, OFFSET
from penstock.spark.routes.methods import method_of
from penstock.spark.sources.control import OPTION as CONTROL
from penstock.spark.sources.control import ControlFile


class LaneRouter:
    """One lane in one batch.

    A table that is gone is replaced by the first one: routes decide where work is done and never
    what comes of it, so a lost table may cost balance but not the query.
    """

    def __init__(
        self, route: Route, exchange: RouteExchange, source: str, version: str | None, lane: int
    ) -> None:
        method = method_of(route)
        document = exchange.read_table(version) if version else None
        if document is None or document["route"] != route.to_json():
            content = method.first(route)
        else:
            content = document["content"]
            route = replace(route, partitions=int(document["tasks"]))
        self._exchange = exchange
        self._kind = method.kind
        self._lane = lane
        self._column = pa.field(COLUMN + source, pa.int32())
        self._method = method.lane(route, content, lane)

    def routed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows with their routes as the last column."""
        routes = self.routes(batch).astype(np.int32)
        schema = batch.schema.append(self._column)
        return pa.RecordBatch.from_arrays([*batch.columns, pa.array(routes)], schema=schema)

    def routes(self, batch: pa.RecordBatch) -> Ints:
        """The task of each of the next rows."""
        return self._method.routes(batch)

    def close(self) -> None:
        """All rows were read: report to the runner what was learnt of them."""
        report = self._method.report()
        if report is not None:
            self._exchange.report(self._kind, str(self._lane), report)


if TYPE_CHECKING:
    from penstock.spark.routes.table_versions import RouteTableVersions


@dataclass
class RoutedReading:
    """The route of one source, if it has one; without, everything passes as it is."""

    source: str
    route: Route | None = None
    exchange: RouteExchange = field(default_factory=lambda: RouteExchange(Path()))
    control: ControlFile = field(default_factory=lambda: ControlFile(None))
    _table_versions: "RouteTableVersions | None" = None

    @classmethod
    def of(cls, options: Mapping[str, str], source: str) -> "RoutedReading":
        """From the options `route_options` made."""
        if "route" not in options:
            return cls(source)
        exchange = RouteExchange(Path(options["routes_at"]))
        file = options.get(CONTROL)
        control = ControlFile(None if file is None else Path(file))
        return cls(source, Route.from_json(options["route"]), exchange, control)

    @property
    def column(self) -> str:
        """The name of the column of routes."""
        return COLUMN + self.source

    def schema(self, columns: str) -> str:
        """The columns of the source, and that of its routes."""
        return f"{columns}, `{self.column}` INT" if self.in_lanes else columns

    @property
    def in_lanes(self) -> bool:
        """Whether lanes write the column; else it is computed where what it goes by is."""
        return self.route is not None and self.route.in_lanes

    def offset(self, start: Mapping[str, Any]) -> dict[str, str]:
        """The table of the batch that begins at an offset, as a part of its end offset."""
        if self.route is None:
            return {}
        if self._table_versions is None:
            # Half a second to import, so only for sources that are routed.
            from penstock.spark.routes.table_versions import RouteTableVersions

            self._table_versions = RouteTableVersions(
                self.route, self.exchange, wanted_tasks=lambda: self.control.read().route_tasks
            )
        return {OFFSET: self._table_versions.version(start.get(OFFSET))}

    def routed(
        self, batches: Iterable[pa.RecordBatch], version: str | None, lane: int
    ) -> Iterator[pa.RecordBatch]:
        """What a lane reads in a batch, with routes."""
        if self.route is None or not self.in_lanes:
            yield from batches
            return
        router = LaneRouter(self.route, self.exchange, self.source, version, lane)
        for batch in batches:
            yield router.routed(batch)
        router.close()
