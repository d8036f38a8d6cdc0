"""What the reader of a streaming source needs to be routed; made from its options alone.

In the runner: `offset` is a part of the end offset of a batch that has rows, and from there its
version goes into the partitions. On executors: `routed` routes what a partition reads.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.model.route import Route
from penstock.spark.routes.exchange import RouteExchange
from penstock.spark.routes.names import COLUMN, OFFSET
from penstock.spark.sources.control import OPTION as CONTROL
from penstock.spark.sources.control import ControlFile

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
        return columns if self.route is None else f"{columns}, `{self.column}` INT"

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
        if self.route is None:
            yield from batches
            return
        from penstock.spark.routes.lane import LaneRouter

        router = LaneRouter(self.route, self.exchange, self.source, version, lane)
        for batch in batches:
            yield router.routed(batch)
        router.close()
