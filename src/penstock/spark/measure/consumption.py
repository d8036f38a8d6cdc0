"""How far the queries of a run have come in its sources, as their progress shows."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from pyspark.sql.streaming.query import StreamingQuery

from penstock.spark.compile.builder import BuiltTopology
from penstock.spark.sources.batch_choice import shed_rows_at
from penstock.spark.sources.offsets import Offset, by_source
from penstock.spark.sources.running.source import RunningSource


class Consumption:
    """What is read, what waits and whether anything is left; of sources that count."""

    def __init__(
        self,
        sources: Mapping[str, RunningSource],
        built: BuiltTopology,
        queries: Callable[[], Sequence[StreamingQuery]],
    ) -> None:
        """`queries` are those that run now, in the order they were built."""
        self._sources, self._built, self._queries = sources, built, queries

    def finished(self) -> bool:
        """Whether all sources have ended and every query has taken all their rows."""
        return all(
            source.finished(offset)
            for query in range(len(self._queries()))
            for source, offsets in self._read_by(query)
            for offset in offsets
        )

    def backlog(self, now_s: float) -> int:
        """Rows that arrived at sources which count and are in no committed batch yet.

        With several queries, that of the one which is furthest behind; and so with a source that a
        query reads twice.
        """
        behind = [
            sum(
                max(source.waiting(offset, now_s) for offset in offsets)
                for source, offsets in self._read_by(query)
            )
            for query in range(len(self._queries()))
        ]
        return max(behind, default=0)

    def shed_rows(self) -> int | None:
        """Rows that sources have shed so far, as their offsets count them; None before a batch."""
        found = [
            sum(max(map(shed_rows_at, offsets)) for offsets in self._offsets(query).values())
            for query, started in enumerate(self._queries())
            if started.lastProgress is not None
        ]
        return max(found, default=None)

    def _read_by(self, query: int) -> Iterator[tuple[RunningSource, Sequence[Offset | None]]]:
        """The sources of a query, each with the offsets it has reached; None: not begun."""
        offsets = self._offsets(query)
        for name in self._built.queries[query].sharing.copies:
            if name in self._sources:
                yield self._sources[name], offsets.get(name) or [None]

    def _offsets(self, query: int) -> dict[str, list[Offset]]:
        progress = self._queries()[query].lastProgress
        return {} if progress is None else by_source([s.endOffset for s in progress.sources])
