"""The work of a topology's queries, and its pairing with what Spark reports of the same batches."""

from collections.abc import Iterator, Sequence

from penstock.errors import Unavailable
from penstock.model.observation import OperatorObservation
from penstock.spark.compile.builder import BuiltQuery
from penstock.spark.measure.batch_work import QueryWork, WorkReader
from penstock.spark.measure.progress import BatchReport
from penstock.spark.measure.running import RunningQueries

MOST_UNPAIRED = 1_000


class WorkOfQueries:
    """Follows every query, also after it was started again: its jobs are in another group then."""

    def __init__(self, running: RunningQueries) -> None:
        built = running.built.queries
        self._readers = {
            query.plan.name: WorkReader(running.session, started, query.plan)
            for query, started in zip(built, running.queries, strict=True)
        }
        names = [query.plan.name for query in built]
        # Tasks and progress of a batch come apart, in any order: each waits for the other.
        self._work: dict[str, list[QueryWork]] = {name: [] for name in names}
        self._reports: dict[str, dict[int, BatchReport]] = {name: {} for name in names}
        running.after_batch.append(lambda query, batch_id: self._readers[query].look(batch_id))
        running.after_restart.append(
            lambda place: self._readers[names[place]].follow(running.queries[place])
        )

    def take(self, missing: list[str]) -> dict[str, QueryWork]:
        """The work of batches that ended since the last call, by query; what failed is named."""
        found: dict[str, QueryWork] = {}
        for name, reader in self._readers.items():
            try:
                work = reader.take()
            except Unavailable as reason:
                missing.append(f"work of {name}: {reason}")
                continue
            if work is not None:
                found[name] = work
        return found

    def paired(
        self, query: str, reports: Sequence[BatchReport], new: QueryWork | None
    ) -> Iterator[tuple[list[BatchReport], QueryWork]]:
        """Work of a query as soon as all its batches are reported, with those reports."""
        reported, waiting = self._reports[query], self._work[query]
        reported |= {report.batch_id: report for report in reports if report.query == query}
        waiting += [new] if new is not None else []
        for work in list(waiting):
            if work.batches <= reported.keys():
                yield [reported.pop(batch) for batch in sorted(work.batches)], work
                waiting.remove(work)
        for batch in sorted(reported)[:-MOST_UNPAIRED]:
            del reported[batch]
        del waiting[:-MOST_UNPAIRED]


def rows_out(report: BatchReport, node: str) -> int:
    """Rows that left a node in a batch; the edge of a lone source is counted by Spark itself."""
    return report.edge_rows.get(node, report.rows)


def operator_rates(
    queries: Sequence[BuiltQuery], reports: Sequence[BatchReport], period_s: float
) -> tuple[OperatorObservation, ...]:
    """Rows a second into and out of each operator."""
    found = []
    for query in queries:
        mine = [report for report in reports if report.query == query.plan.name]
        for operator, upstreams in query.edges.items():
            came = sum(rows_out(report, upstream) for report in mine for upstream in upstreams)
            left = sum(rows_out(report, operator) for report in mine)
            found.append(OperatorObservation(operator, came / period_s, left / period_s))
    return tuple(found)
