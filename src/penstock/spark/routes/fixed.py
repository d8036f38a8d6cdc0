"""Methods without a table: plain hashing, the ring alone, rows in turn, two choices."""

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pyarrow as pa

from penstock.model.observation import Floats, Ints
from penstock.model.route import Route
from penstock.routing.baselines import plain_hash_routes, two_choices_routes
from penstock.routing.hashing import Hashes, key_hashes
from penstock.routing.ring import Ring, ring_of
from penstock.spark.routes.exchange import Document
from penstock.spark.routes.method import LaneMethod, NextTable


def batch_hashes(batch: pa.RecordBatch, route: Route) -> Hashes:
    """The hash of each row's key."""
    return key_hashes(*(batch.column(name) for name in route.key))


@lru_cache(maxsize=32)
def ring_for(partitions: int) -> Ring:
    """A ring is costly to make and is the same for all tables of a route."""
    return ring_of(partitions)


@dataclass
class Fixed:
    """One of the methods; nothing is learnt, so the table is empty."""

    name: str
    kind = ""
    every_batch = False

    def first(self, route: Route) -> Document:
        return {}

    def next(self, route: Route, content: Document, reports: list[Document]) -> NextTable:
        return NextTable(content)

    def lane(self, route: Route, content: Document, lane: int) -> LaneMethod:
        if self.name == "round-robin":
            return _InTurn(route.partitions, lane)
        if self.name == "two-choices":
            return _TwoChoices(route, np.zeros(route.partitions))
        return _Hashed(route, ring_for(route.partitions) if self.name == "consistent" else None)


@dataclass
class _InTurn(LaneMethod):
    partitions: int
    next_row: int  # lanes begin at different tasks

    def routes(self, batch: pa.RecordBatch) -> Ints:
        first, self.next_row = self.next_row, self.next_row + batch.num_rows
        return np.arange(first, self.next_row) % self.partitions


@dataclass
class _Hashed(LaneMethod):
    route: Route
    ring: Ring | None

    def routes(self, batch: pa.RecordBatch) -> Ints:
        hashes = batch_hashes(batch, self.route)
        if self.ring is not None:
            return self.ring.routes(hashes)
        return plain_hash_routes(hashes, self.route.partitions)


@dataclass
class _TwoChoices(LaneMethod):
    route: Route
    load: Floats = field(repr=False)

    def routes(self, batch: pa.RecordBatch) -> Ints:
        found, self.load = two_choices_routes(batch_hashes(batch, self.route), self.load)
        return found
