"""Rows that came to sources which are not Penstock's own, and those that wait there."""

from collections.abc import Iterable

from penstock.spark.measure.progress import BatchReport


class ForeignRows:
    """Follows the batches of queries.

    Such a source does not say what came. But what a batch took, and what it left more than the one
    before it, must have come; a source that does not show what it has left hands over all of it.
    """

    def __init__(self) -> None:
        self.waiting: dict[str, int] = {}  # by query, as its newest batch left it

    def came(self, reports: Iterable[BatchReport]) -> dict[str, int]:
        """Rows that came until these batches were formed, by query.

        What a query finds waiting at first may have come at any time.
        """
        came: dict[str, int] = {}
        for report in reports:
            left = report.foreign_lag_rows
            more = report.foreign_rows + left - self.waiting.get(report.query, left)
            came[report.query] = came.get(report.query, 0) + more
            self.waiting[report.query] = left
        return {query: max(0, rows) for query, rows in came.items()}
