"""On an executor: a lane writes the route column of its rows, by the table of the batch."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from penstock.model.route import Route
from penstock.spark.routes.exchange import RouteExchange
from penstock.spark.routes.methods import method_of
from penstock.spark.routes.names import COLUMN


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
        routes = self._method.routes(batch).astype(np.int32)
        schema = batch.schema.append(self._column)
        return pa.RecordBatch.from_arrays([*batch.columns, pa.array(routes)], schema=schema)

    def close(self) -> None:
        """All rows were read: report to the runner what was learnt of them."""
        report = self._method.report()
        if report is not None:
            self._exchange.report(self._kind, str(self._lane), report)
