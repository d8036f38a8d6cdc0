"""How far the queries of a run have come in its sources, as their progress tells."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from penstock.model.sources import Streams
from penstock.model.topology import Topology
from penstock.spark.checkpoint.identity import generators
from penstock.spark.compile.builder import BuiltTopology
from penstock.spark.sources.batch_choice import shed_rows_at
from penstock.spark.sources.watch import SourceWatch, waiting_rows
from penstock.workloads.generator import Generator


class Consumption:
    """What is read, what waits and whether anything is left; of sources that tell."""

    def __init__(
        self,
        topology: Topology,
        built: BuiltTopology,
        sources: SourceWatch,
        epoch_s: float,
        queries: Callable[[], Sequence[StreamingQuery]],
    ) -> None:
        """`queries` are those that run now, in the order they were built."""
        self._topology, self._built, self._sources = topology, built, sources
        self._epoch_s, self._queries = epoch_s, queries

    def finished(self) -> bool:
        """Whether all sources are bounded streams and every query has taken all their rows."""
        streams = generators(self._topology)
        many = [s.name for s in self._topology.sources if isinstance(s.reader, Streams)]
        if len(streams) + len(many) < len(self._topology.sources):
            return False
        return all(map(self._streams_are_finished, range(len(self._queries())))) and all(
            stream.rows is not None and consumed >= stream.rows
            for query in range(len(self._queries()))
            for stream, consumed in self._consumed(query)
        )

    def backlog(self, now_s: float) -> int:
        """Rows that arrived at generated streams and are in no committed batch yet.

        With several queries, that of the one which is furthest behind.
        """
        behind = [
            sum(
                stream.available(now_s - self._epoch_s) - consumed
                for stream, consumed in self._consumed(query)
            )
            + sum(map(waiting_rows, self._streams_of(query)))
            for query in range(len(self._queries()))
        ]
        return max(behind, default=0)

    def shed_rows(self) -> int | None:
        """Rows that sources have shed so far, as their offsets count them; None before a batch."""
        found = [self._shed_by(query) for query in range(len(self._queries()))]
        return max((rows for rows in found if rows is not None), default=None)

    def _shed_by(self, query: int) -> int | None:
        progress = self._queries()[query].lastProgress
        if progress is None:
            return None
        rows: dict[str, int] = {}
        for source in progress.sources:
            offset = json.loads(source.endOffset) if source.endOffset else None
            if isinstance(offset, dict):
                # A stream that is joined with itself sheds the same rows twice.
                rows[str(offset.get("stream", offset.get("source")))] = shed_rows_at(offset)
        return sum(rows.values())

    def _streams_of(self, query: int) -> list[dict[str, Any]]:
        """What the sources of many streams say that a query has read from."""
        progress = self._queries()[query].lastProgress
        found = [self._sources.status_at(s.endOffset) for s in progress.sources] if progress else []
        return [status for status in found if status is not None]

    def _streams_are_finished(self, query: int) -> bool:
        """Whether every stream that a query reads has ended and is read to its end."""
        read = self._built.queries[query].sharing.copies
        many = [s for s in self._topology.sources if isinstance(s.reader, Streams)]
        statuses = self._streams_of(query)
        return {s.name for s in many if s.name in read} <= {s["source"] for s in statuses} and all(
            status["finished"] and status["seq"] == status["reached"] for status in statuses
        )

    def _consumed(self, query: int) -> list[tuple[Generator, int]]:
        """How far a query has come in each generated stream that it reads.

        A stream that is joined with itself is two sources to Spark; the one behind counts.
        """
        progress = self._queries()[query].lastProgress
        rows: dict[str, int] = {}
        for source in progress.sources if progress else []:
            offset = json.loads(source.endOffset) if source.endOffset else None
            if isinstance(offset, dict) and "stream" in offset:
                name, row = str(offset["stream"]), int(offset["row"])
                rows[name] = min(row, rows.get(name, row))
        read = self._built.queries[query].sharing.copies
        streams = generators(self._topology).items()
        return [(stream, rows.get(name, 0)) for name, stream in streams if name in read]
