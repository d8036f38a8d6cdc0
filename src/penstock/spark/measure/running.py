"""What measuring needs to know of a topology that runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.model.topology import Topology
from penstock.spark.channels.entries import Entry
from penstock.spark.compile.apart import BuiltApart
from penstock.spark.compile.builder import BuiltQuery, BuiltTopology
from penstock.spark.measure.ledger import Ledger
from penstock.spark.measure.progress import Reports
from penstock.spark.sources.running.source import RunningSource
from penstock.spark.sources.watch import SourceWatch


class RunningQueries(Protocol):
    """The queries of a topology, started, in the order they were built in."""

    topology: Topology
    session: SparkSession
    built: BuiltTopology
    queries: list[StreamingQuery]
    ledger: Ledger
    sources: SourceWatch
    inputs: dict[str, RunningSource]  # the topology's sources, by name
    after_restart: list[Callable[[int], None]]  # called with the query's place
    after_batch: list[Callable[[str, int], None]]  # called by the query's thread

    @property
    def reports(self) -> Reports:
        """What Spark reports of this run's batches."""

    @property
    def routes_folder(self) -> Path:
        """Where the tables of routes are, by source."""

    def backlog(self, now_s: float) -> int:
        """Rows that arrived and are in no committed batch yet."""

    def shed_rows(self) -> int | None:
        """Rows shed since the checkpoint was begun; None before a batch has ended."""

    def checkpoint_of(self, query: BuiltQuery) -> str:
        """Where Spark keeps the checkpoint of a query."""


class RunningComponents(RunningQueries, Protocol):
    """Components apart: a query for each, joined by channels."""

    apart: BuiltApart
    epoch_s: float

    def parallelism(self) -> dict[str, int]:
        """Processors that each component was given last."""

    def published(self) -> dict[str, int]:
        """Rows in each channel since it was made."""

    def last_published(self, operator: str, count: int) -> list[Entry]:
        """What an operator published last, as so many entries of its channel."""

    def channel_backlog(self, component: str) -> int:
        """Rows published for a component and not worked through yet."""

    def source_backlog(self, component: str, now_s: float) -> int:
        """Rows that arrived at a component's own sources and are not worked through."""
