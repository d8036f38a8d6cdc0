"""When the rows of each batch arrived and when its results were out: latency at no cost per row.

The ledger joins two reports on a batch: its offsets (from the query's progress), which say when its
rows arrived, and the moment its outputs were committed. Latency is that of a batch's rows: a result
that waits for a watermark is counted with the batch that emits it.
"""

import json
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from penstock.model.arrivals import Arrivals
from penstock.model.decision import USUAL_SHARE
from penstock.model.observation import LatencyObservation, SinkObservation
from penstock.model.plan import QueryPlan
from penstock.model.topology import Topology
from penstock.spark.measure.bounded import Halves, Untaken
from penstock.spark.measure.spread_latencies import SpreadLatencies
from penstock.spark.sources.offsets import source_of
from penstock.spark.sources.running.source import RunningSource


@dataclass(frozen=True)
class LedgerEntry:
    """One batch: what came in, and when its results were out."""

    query: str
    batch_id: int
    arrivals: tuple[Arrivals, ...]
    done_at_s: float

    @property
    def rows(self) -> float:
        """Rows of the batch over all sources."""
        return sum(part.rows for part in self.arrivals)


@dataclass(frozen=True)
class SourceProgress:
    """What a query's progress says of one source in one batch."""

    start: str | None
    end: str | None
    rows: int
    before_s: float  # when the previous batch was formed
    formed_s: float  # when this batch was formed


class Ledger:
    """Joins arrivals with completions; both may come from different threads, in any order."""

    def __init__(
        self,
        sources: Mapping[str, RunningSource],
        read_by: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        """`read_by` has the sources behind each query whose batches count.

        A row that several queries read, or one query twice, is one row: each reading of it counts
        for its part, so that a slow query still shows in the latency.
        """
        self._sources = sources
        self._read_by = read_by or {}
        self._readers: Counter[str | None] = Counter(
            name for names in self._read_by.values() for name in names
        )
        self._lock = threading.Lock()
        self._done: Halves[float] = Halves()
        self._arrived: Halves[tuple[Arrivals, ...]] = Halves()
        self._entries: Untaken[LedgerEntry] = Untaken()

    def committed(self, query: str, batch_id: int, at_s: float) -> None:
        """The outputs of a batch are out."""
        with self._lock:
            self._done.put(query, batch_id, at_s)
            self._join(query, batch_id)

    def admitted(
        self, query: str, batch_id: int, sources: tuple[SourceProgress, ...],
        counted: Mapping[str, int] | None = None,
    ) -> None:  # fmt: skip
        """The offsets of a batch are known, and of some sources how many rows were counted."""
        names = [source_of(json.loads(source.end) if source.end else None) for source in sources]
        arrivals = tuple(
            replace(part, rows=part.rows * self._share(query, name, names, counted or {}))
            for source, name in zip(sources, names, strict=True)
            if source.rows > 0
            for part in self._arrivals(source)
        )
        with self._lock:
            self._arrived.put(query, batch_id, arrivals)
            self._join(query, batch_id)

    def record(self, entry: LedgerEntry) -> None:
        """A batch whose arrivals and completion are both known to its writer."""
        share = self._part(self._read_by.get(entry.query, ()), {})
        parts = tuple(replace(part, rows=part.rows * share) for part in entry.arrivals)
        with self._lock:
            self._entries.add(entry.query, replace(entry, arrivals=parts))

    def take(self) -> list[LedgerEntry]:
        """The batches completed since the last call."""
        with self._lock:
            return self._entries.take()

    def _join(self, query: str, batch_id: int) -> None:
        if self._done.has(query, batch_id) and self._arrived.has(query, batch_id):
            arrived, done_s = self._arrived.pop(query, batch_id), self._done.pop(query, batch_id)
            self._entries.add(query, LedgerEntry(query, batch_id, arrived, done_s))

    def _share(
        self, query: str, name: str | None, read: Sequence[str | None], counted: Mapping[str, int]
    ) -> float:
        """How much one reading of a source in a batch counts, among all readings of its rows.

        Sources that are not ours do not say their names: all of them have the share that their
        rows have together.
        """
        named = [name] if name is not None else set(self._read_by.get(query, ())) - set(read)
        times = max(1.0, read.count(name) / max(1, len(named)))
        return self._part(named, counted) / times

    def _part(self, names: Collection[str | None], counted: Mapping[str, int]) -> float:
        rows = [counted.get(name or "", 0) for name in names]
        if not any(rows):
            rows = [1] * len(names)
        once = sum(n / max(1, self._readers[name]) for name, n in zip(names, rows, strict=True))
        return once / sum(rows) if rows else 1.0

    def _arrivals(self, source: SourceProgress) -> list[Arrivals]:
        end: Any = json.loads(source.end) if source.end else None
        known = self._sources.get(source_of(end) or "")
        start = json.loads(source.start) if source.start else None
        parts = [] if known is None else known.arrivals(start, end)
        if not parts:
            # A source that keeps no arrival times: its rows came since the last batch was formed.
            return [Arrivals(source.rows, source.before_s, source.formed_s)]
        # Rows that were shed or malformed arrived too, but nobody waits for their results.
        read = source.rows / sum(part.rows for part in parts)
        return [replace(part, rows=part.rows * read) for part in parts]


class WrittenLedger(Ledger):
    """Hears of whole batches from their writers; what Spark reports later adds nothing."""

    def admitted(
        self, query: str, batch_id: int, sources: tuple[SourceProgress, ...],
        counted: Mapping[str, int] | None = None,
    ) -> None:  # fmt: skip
        """Nothing to keep."""


@dataclass(frozen=True)
class SinkBounds:
    """Which query writes which sink of a topology, and the latency bound of each."""

    by_query: Mapping[str, Mapping[str, float]]

    @classmethod
    def of(cls, topology: Topology, queries: Iterable[QueryPlan]) -> "SinkBounds":
        """Those of a topology that runs as these queries."""
        bounds_s = topology.sink_bounds_s
        return cls({
            query.name: {sink: bounds_s[sink] for sink in query.sinks if sink in bounds_s}
            for query in queries
        })  # fmt: skip

    def strictest_s(self, query: str, usual_s: float) -> float:
        """What the results of a query are measured by."""
        return min(self.by_query.get(query, {}).values(), default=usual_s)

    def observed(
        self, entries: Sequence[LedgerEntry], share: float = USUAL_SHARE
    ) -> tuple[SinkObservation, ...]:
        """Each sink by its own bound, where there are several; the share is one for all."""
        sinks = {
            sink: bound_s for own in self.by_query.values() for sink, bound_s in own.items()
        }  # fmt: skip
        if len(sinks) < 2:
            return ()
        found = []
        for sink, bound_s in sinks.items():
            written = [entry for entry in entries if sink in self.by_query.get(entry.query, {})]
            latency = summarise(written, bound_s, share=share)
            found += [SinkObservation(sink, bound_s, latency)] if latency is not None else []
        return tuple(found)


def summarise(
    entries: Sequence[LedgerEntry], max_latency_s: float, bounds: SinkBounds | None = None,
    share: float = USUAL_SHARE,
) -> LatencyObservation | None:  # fmt: skip
    """Latency over batches, every row counted, rows of a batch evenly spread over its arrivals.

    In time is what keeps the bound of the sinks it goes to, where they have bounds of their own.
    `share` of the rows must: the latency that so many of them kept is told.
    """
    parts = [(part, entry.done_at_s) for entry in entries for part in entry.arrivals]
    count = sum(part.rows for part, _ in parts)
    if count == 0:
        return None
    # Below 0 where the machine's clock was set back meanwhile: so many rows took no time.
    spread = SpreadLatencies(
        np.array([part.rows for part, _ in parts], dtype=np.float64),
        np.array([done_s - part.last_s for part, done_s in parts]),
        np.array([done_s - part.first_s for part, done_s in parts]),
    )
    in_time = sum(
        part.later_than(
            entry.done_at_s
            - (max_latency_s if bounds is None else bounds.strictest_s(entry.query, max_latency_s))
        )
        for entry in entries
        for part in entry.arrivals
    )
    mean_s = sum(part.rows * max(0.0, done_s - part.mean_s) for part, done_s in parts) / count
    return LatencyObservation(
        count=max(1, round(count)),
        mean_s=mean_s,
        p95_s=max(0.0, spread.quantile_s(0.95)),
        max_s=max(0.0, float(spread.most_s.max())),
        in_time_share=in_time / count,
        share_s=max(0.0, spread.quantile_s(share)),
    )
