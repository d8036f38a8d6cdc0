"""What Spark reports of each batch, gathered as it comes, per query."""

import json
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from penstock.spark.handles.plan_nodes import METRIC, PATH
from penstock.spark.measure.bounded import Untaken
from penstock.spark.measure.ledger import Ledger, SourceProgress
from penstock.spark.measure.source_lag import lag_rows
from penstock.spark.sources.batch_choice import shed_rows_at
from penstock.spark.sources.offsets import source_of

STATE_TIMES = ("allUpdatesTimeMs", "allRemovalsTimeMs", "commitTimeMs")


@dataclass(frozen=True)
class BatchReport:
    """One batch as the query's progress reports it."""

    query: str
    batch_id: int
    formed_s: float
    duration_s: float
    rows: int
    edge_rows: dict[str, int]  # rows counted at the edges that have a metric
    foreign_rows: int = 0  # of them, from sources that are not Penstock's own
    foreign_lag_rows: int = 0  # left at those that tell their newest offset
    state_s: tuple[float, ...] = ()  # of tasks, by stateful operator, as they are in the plan


class Reports:
    """Keeps the reports of the queries of one run, and passes their offsets to the ledger."""

    def __init__(
        self, ledger: Ledger, foreign: Mapping[str, Collection[str]] | None = None
    ) -> None:
        """`foreign` has those sources of each query that are not Penstock's own."""
        self._ledger = ledger
        self._foreign = foreign or {}
        self._queries: dict[str, str] = {}
        self._formed_s: dict[str, float] = {}
        self._reports: Untaken[BatchReport] = Untaken()
        self._lock = threading.Lock()
        self.latest: dict[str | None, int] = {}  # the newest batch reported by each query

    def follow(self, query_id: str, name: str, now_s: float) -> None:
        """Reports of this query are wanted, under this name."""
        self._queries[query_id] = name
        self._formed_s[name] = now_s

    def take(self) -> list[BatchReport]:
        """The reports since the last call."""
        with self._lock:
            return self._reports.take()

    def caught_up(self, query: StreamingQuery) -> bool:
        """Whether its newest batch has come in. A trigger that found nothing is no batch: it is
        in the query's progress, under the next batch's number, and never sent."""
        newest_first = reversed(query.recentProgress)
        ended = (one.batchId for one in newest_first if "addBatch" in one.durationMs)
        newest = next(ended, None)
        return newest is None or self.latest.get(query.name) == newest

    def receive(self, text: str) -> None:
        """A batch ended; its progress as JSON."""
        progress = json.loads(text)
        name = self._queries.get(progress["id"])
        if name is None:
            return
        _count_once(progress, self._foreign.get(name, ()))
        report = _report(name, progress)
        # Not later than this batch, should the machine's clock have been set back.
        before_s = min(self._formed_s[name], report.formed_s)
        self._formed_s[name] = report.formed_s
        sources = tuple(
            SourceProgress(
                json.dumps(source["startOffset"]) if source["startOffset"] else None,
                json.dumps(source["endOffset"]) if source["endOffset"] else None,
                _rows(source),
                before_s,
                report.formed_s,
            )
            for source in progress["sources"]
        )
        with self._lock:
            self._reports.add(name, report)
        self._ledger.admitted(name, report.batch_id, sources, report.edge_rows)
        self.latest[name] = report.batch_id


def _count_once(progress: dict[str, Any], sources: Collection[str]) -> None:
    """Spark counts rows of a source as often as a batch reads them; edges have their number.

    Which of the sources in a progress is which is not known, so all are corrected alike.
    """
    foreign = [one for one in progress["sources"] if source_of(one["endOffset"]) is None]
    counted = _edge_rows(progress.get("observedMetrics", {}))
    read = sum(int(one["numInputRows"]) for one in foreign)
    if not read or not sources or not counted.keys() >= set(sources):
        return
    share = sum(counted[name] for name in sources) / read
    for one in foreign:
        one["numInputRows"] = round(share * one["numInputRows"])


def _report(name: str, progress: dict[str, Any]) -> BatchReport:
    duration = progress["durationMs"]
    foreign = [one for one in progress["sources"] if source_of(one["endOffset"]) is None]
    return BatchReport(
        query=name,
        batch_id=progress["batchId"],
        formed_s=datetime.fromisoformat(progress["timestamp"]).timestamp(),
        duration_s=duration.get("triggerExecution", 0) / 1e3,
        rows=sum(map(_rows, progress["sources"])),
        foreign_rows=sum(source["numInputRows"] for source in foreign),
        foreign_lag_rows=sum(map(lag_rows, foreign)),
        edge_rows=_edge_rows(progress.get("observedMetrics", {})),
        state_s=tuple(
            sum(operator[name] for name in STATE_TIMES) / 1e3
            for operator in progress.get("stateOperators", ())
        ),
    )


def _rows(source: dict[str, Any]) -> int:
    """Rows of a source in a batch; Spark counts packs where rows cross to it in packs."""
    start, end = source["startOffset"], source["endOffset"]
    if isinstance(end, dict) and end.get("packed"):
        shed = shed_rows_at(end) - shed_rows_at(start)
        return int(end["rows"]) - shed if end != start else 0
    return int(source["numInputRows"])


def _edge_rows(metrics: dict[str, dict[str, Any]]) -> dict[str, int]:
    """Rows by node; a node observed once for each of its consumers shows the same count each."""
    rows: dict[str, int] = {}
    for metric, values in metrics.items():
        if metric.startswith(METRIC):
            node = metric.removeprefix(METRIC).partition(PATH)[0]
            rows[node] = max(rows.get(node, 0), int(values["rows"]))
    return rows
