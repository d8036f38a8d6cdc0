"""What every method of routing is on Spark: a table that travels, and a lane that goes by it."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from penstock.model.observation import Ints
from penstock.model.route import Route
from penstock.spark.routes.exchange import Document

OFFSET = "routes"  # the field of an offset that names the table of the batch it ends
COLUMN = "__route_"  # of the lane's rows; followed by the source's name
PROPERTY = "penstock.routes"  # a local property, because those reach executors too


class LaneMethod(ABC):
    """Routes the rows of one lane in one batch; a pure function of the rows, table and lane."""

    @abstractmethod
    def routes(self, batch: pa.RecordBatch) -> Ints:
        """The task of each of the next rows."""

    def report(self) -> Document | None:
        """What the lane has learnt of its rows, if anything."""
        return None


@dataclass(frozen=True)
class NextTable:
    """A table as JSON, and why it is as it is."""

    content: Document
    reasons: tuple[str, ...] = ()


class Method(Protocol):
    """Makes tables in the runner and lane methods on executors."""

    kind: str  # of the reports it goes by; "" if by none
    every_batch: bool  # whether a table is only good for one batch

    def first(self, route: Route) -> Document:
        """The table before anything is known; the same every time."""

    def next(self, route: Route, content: Document, reports: list[Document]) -> NextTable:
        """The table that follows, from reports since the last."""

    def lane(self, route: Route, content: Document, lane: int) -> LaneMethod:
        """What a lane does with a table."""
