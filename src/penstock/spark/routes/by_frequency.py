"""Frequency-aware routes: lanes count keys, the runner merges the counts and splits hot ones."""

import base64
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pyarrow as pa

from penstock.errors import InvalidInput
from penstock.model.observation import Ints
from penstock.model.route import Route
from penstock.routing.decision import decide_routes
from penstock.routing.frequent_keys import FrequentKeys
from penstock.routing.route_table import RouteTable
from penstock.routing.splitting import SplitRule
from penstock.spark.routes.exchange import Document
from penstock.spark.routes.fixed import batch_hashes, ring_for
from penstock.spark.routes.method import LaneMethod, NextTable

LEAST_ROWS = 64  # fewer say nothing of frequencies


class ByFrequency:
    """The ring, with the most frequent keys of the last period cut into parts."""

    kind = "keys"
    every_batch = False

    def first(self, route: Route) -> Document:
        return {"table": RouteTable(ring_for(route.partitions)).to_json()}

    def next(self, route: Route, content: Document, reports: list[Document]) -> NextTable:
        """Split by the merged counts of all lanes; too few rows change nothing."""
        counted = FrequentKeys()
        for report in reports:
            try:
                counted.merge(FrequentKeys.from_bytes(base64.b64decode(report["sketch"])))
            except (InvalidInput, KeyError, ValueError, TypeError):
                continue  # a damaged report is one lane's word less
        if counted.total_rows < LEAST_ROWS:
            fits = len(_table(str(content["table"])).ring.nodes) == route.partitions
            return NextTable(content if fits else self.first(route))
        rule = SplitRule(top_k=route.top_k)
        decided = decide_routes(counted, ring_for(route.partitions), rule)
        return NextTable({"table": decided.plan.to_json()}, decided.reasons)

    def lane(self, route: Route, content: Document, lane: int) -> LaneMethod:
        return _Counting(route, _table(str(content["table"])), lane)


@lru_cache(maxsize=8)
def _table(text: str) -> RouteTable:
    return RouteTable.from_json(text)


@dataclass
class _Counting(LaneMethod):
    route: Route
    table: RouteTable
    lane: int
    rows: int = 0
    counted: FrequentKeys = field(default_factory=FrequentKeys)
    _rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.lane)  # the same sample when a batch is repeated

    def routes(self, batch: pa.RecordBatch) -> Ints:
        hashes = batch_hashes(batch, self.route)
        columns = [batch.column(name) for name in self.route.key]
        self.counted.add(hashes, columns, self._rng)
        found = self.table.routes_of(hashes, self.rows)
        self.rows += batch.num_rows
        return found

    def report(self) -> Document:
        return {"sketch": base64.b64encode(self.counted.to_bytes()).decode("ascii")}
