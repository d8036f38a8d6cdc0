"""A topology that runs: its queries, its outputs, and how it ends."""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.errors import InvalidTopology, PenstockError
from penstock.model.topology import Topology
from penstock.spark.builder import BuiltQuery, BuiltTopology, Reading, build
from penstock.spark.checkpoint import Checkpoint
from penstock.spark.ledger import Ledger
from penstock.spark.outputs import BatchWriter, rows_in_memory
from penstock.spark.progress import ProgressListener
from penstock.spark.survey import first_line
from penstock.workloads.generator import Generator


@dataclass(frozen=True)
class Pace:
    """When batches start: back to back, every `interval_s`, or once over what is there."""

    interval_s: float = 0.0
    once: bool = False


class RunningTopology:
    """The queries of a topology under one checkpoint; a context manager that always stops them."""

    def __init__(
        self,
        topology: Topology,
        session: SparkSession,
        checkpoint: Path,
        pace: Pace = Pace(),  # noqa: B008 - frozen
        measured: bool = True,
    ) -> None:
        if pace.interval_s >= 2 * topology.max_latency_s:
            raise InvalidTopology(
                f"topology {topology.name!r}: max_latency {topology.max_latency_s:g} s cannot be "
                f"kept with a batch every {pace.interval_s:g} s; a row waits half of that."
            )
        self.topology = topology
        self.session = session
        self._pace = pace
        self._measured = measured
        self._checkpoint = Checkpoint(checkpoint)
        self._writers: list[BatchWriter] = []
        self._ending = threading.Lock()
        self.queries: list[StreamingQuery] = []
        self.after_batch: list[Callable[[str, int], None]] = []  # called by the query's thread

    def __enter__(self) -> "RunningTopology":
        self._checkpoint.__enter__()
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _start(self) -> None:
        self.epoch_s = self._checkpoint.epoch_s(time.time())
        reading = Reading(self.epoch_s, self._measured)
        self.built = build(self.topology, self.session, reading)
        self._checkpoint.check_identity(_identity(self.topology, self.built, self.session))
        self.ledger = Ledger(generators(self.topology), self.epoch_s)
        self.listener = ProgressListener(self.ledger)
        self.session.streams.addListener(self.listener)
        for query in self.built.queries:
            self.queries.append(self._start_query(query))

    def _start_query(self, query: BuiltQuery) -> StreamingQuery:
        name = query.plan.name
        writer = BatchWriter(
            query, self._checkpoint.commits(name), lambda batch_id: self._written(name, batch_id)
        )
        self._writers.append(writer)
        stream = query.frame.writeStream.foreachBatch(writer).outputMode(query.plan.output_mode)
        stream = stream.option("checkpointLocation", self._checkpoint.query(name)).queryName(name)
        if self._pace.once:
            stream = stream.trigger(availableNow=True)
        else:
            stream = stream.trigger(processingTime=f"{self._pace.interval_s:.3f} seconds")
        # Reuse can hide a watermark from state above it; see assembly.py for when it is safe.
        reuse = "true" if query.sharing.shared else "false"
        self.session.conf.set("spark.sql.exchange.reuse", reuse)
        try:
            started = stream.start()
        except PySparkException as error:
            raise InvalidTopology(f"query {name!r}: {first_line(error)}") from error
        self.listener.follow(str(started.id), name, time.time())
        return started

    def _written(self, query: str, batch_id: int) -> None:
        self.ledger.committed(query, batch_id, time.time())
        for look in self.after_batch:
            look(query, batch_id)

    def rows(self, sink: str) -> list[Row]:
        """What a Memory sink holds."""
        return rows_in_memory(self._writers, sink)

    @property
    def active(self) -> bool:
        """Whether any query still runs."""
        return any(query.isActive for query in self.queries)

    def finished(self) -> bool:
        """Whether every row of bounded streams is in a committed batch."""
        streams = generators(self.topology).values()
        if any(stream.rows is None for stream in streams) or not streams:
            return False
        wanted = sum(stream.rows or 0 for stream in streams)
        return all(self._consumed(query) >= wanted for query in self.queries)

    def backlog(self, now_s: float) -> int:
        """Rows that arrived at generated streams and are in no committed batch yet."""
        consumed = min((self._consumed(query) for query in self.queries), default=0)
        return self.ledger.available_rows(now_s) - consumed

    def checkpoint_of(self, query: BuiltQuery) -> str:
        """Where Spark keeps the checkpoint of a query."""
        return self._checkpoint.query(query.plan.name)

    def _consumed(self, query: StreamingQuery) -> int:
        progress = query.lastProgress
        offsets = [source.endOffset for source in progress.sources] if progress else []
        return sum(_row_of(offset) for offset in offsets)

    def wait(self, timeout_s: float | None = None, poll_s: float = 0.2) -> bool:
        """Until all bounded streams are worked off, or all queries ended, or the time is over.

        A run over what is there ends by itself, after a last batch for what the watermark closes.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while self.active and (self._pace.once or not self.finished()):
            if deadline is not None and time.monotonic() > deadline:
                return False
            time.sleep(poll_s)
        self.raise_failure()
        return True

    def settle(self, limit_s: float = 5.0) -> None:
        """Until the reports of all batches that ended have come in; they are sent as events."""
        deadline = time.monotonic() + limit_s
        for query in self.queries:
            while time.monotonic() < deadline:
                progress = query.lastProgress
                if progress is None or self.listener.latest.get(query.name) == progress.batchId:
                    break
                time.sleep(0.05)

    def raise_failure(self) -> None:
        """Raise one sentence if a query failed."""
        for query, writer in zip(self.queries, self._writers, strict=True):
            error = query.exception()
            if error is not None:
                said = writer.failure or first_line(error)
                raise PenstockError(f"query {query.name!r} failed: {said}")

    def stop(self) -> None:
        """Stop between two batches, so that no output is cut short; may be called twice."""
        with self._ending:
            for writer in self._writers:
                with writer.between_batches:
                    writer.closed = True
            for query in self.queries:
                query.stop()
            if self.queries:
                self.session.streams.removeListener(self.listener)
            self.queries = []
            self._checkpoint.__exit__(None, None, None)


def generators(topology: Topology) -> dict[str, Generator]:
    """The sources of a topology that are generated streams."""
    return {
        source.name: source.reader
        for source in topology.sources
        if isinstance(source.reader, Generator)
    }


def _row_of(offset: str | None) -> int:
    parsed = json.loads(offset) if offset else {}
    return int(parsed.get("row", 0)) if isinstance(parsed, dict) else 0


def _identity(topology: Topology, built: BuiltTopology, session: SparkSession) -> dict[str, object]:
    """What state and outputs depend on; a restart with another identity is refused."""
    return {
        "topology": topology.name,
        "key_groups": int(str(session.conf.get("spark.sql.shuffle.partitions"))),
        "schema": built.schemas,
        "key": {
            component.name: list(component.key)
            for query in built.plan.queries
            for component in query.components
        },
    }
