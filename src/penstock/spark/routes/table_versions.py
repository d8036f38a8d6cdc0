"""In a source's runner: which table the next batch is routed by.

The answer goes into the batch's end offset, which Spark writes down before the batch runs; the
table itself is on the disk before that. So a batch repeated after a crash has the same table.
"""

import time
from collections.abc import Callable
from dataclasses import replace

from penstock.model.route import Route
from penstock.spark.checkpoint.advisory_files import AdvisoryFiles
from penstock.spark.routes.exchange import Document, RouteExchange
from penstock.spark.routes.methods import method_of

TIDY_S = 10.0
KEPT_REPORTS_S = 120.0  # by then everyone had time to read them


class RouteTableVersions:
    """Keeps the newest table, and makes the next when its time has come."""

    def __init__(
        self,
        route: Route,
        exchange: RouteExchange,
        clock: Callable[[], float] = time.monotonic,
        wanted_tasks: Callable[[], int | None] = lambda: None,
    ) -> None:
        """`wanted_tasks` says how many tasks the next table is to use; None: all of them."""
        self._route = route
        self._exchange = exchange
        self._method = method_of(route)
        self._advisory = AdvisoryFiles(f"route {exchange.path.name}")
        self._clock = clock
        self._wanted_tasks = wanted_tasks
        self._version = ""
        self._document: Document = {}
        self._read: set[str] = set()  # names of reports
        self._seen_s: dict[str, float] = {}  # of all reports: when they were first seen here
        self._made_at_s = self._tidied_at_s = clock()

    def version(self, before: str | None) -> str:
        """The table of the next batch; `before` is that of the last one."""
        if not self._version:
            self._take_up(before)
        tasks = min(self._wanted_tasks() or self._route.partitions, self._route.partitions)
        if tasks != self._document["tasks"] or (self._method.kind and self._is_due()):
            self._renew(tasks)
        if self._clock() - self._tidied_at_s >= TIDY_S:
            self._tidy()
        return self._version

    def _tidy(self) -> None:
        now_s = self._tidied_at_s = self._clock()
        with self._advisory.attempt("removing old tables"):
            self._exchange.prune()
        # By when they were first seen: the clock that their names are made by can be set.
        there = self._exchange.all_reports()
        self._seen_s = {name: self._seen_s.get(name, now_s) for name in there}
        old = [name for name, at_s in self._seen_s.items() if now_s - at_s >= KEPT_REPORTS_S]
        self._exchange.forget_reports(old)

    def _is_due(self) -> bool:
        passed_s = self._clock() - self._made_at_s
        return self._method.every_batch or passed_s >= self._route.period_s

    def _take_up(self, before: str | None) -> None:
        """Go on with the table before a restart, if it is still of this route."""
        self._exchange.prepare()
        known = self._exchange.read_table(before) if before else None
        if before is not None and known is not None and known["route"] == self._route.to_json():
            self._version, self._document = before, known
        else:
            first = self._method.first(self._route)
            self._keep(first, self._route.partitions, (), "")
        until = str(self._document["reports_until"])
        names = self._exchange.report_names(self._method.kind)
        self._read = {name for name in names if name <= until}
        self._made_at_s = self._clock()

    def _renew(self, tasks: int) -> None:
        self._made_at_s = self._clock()
        after = str(self._document["reports_until"])
        # By name and not by time: clocks are set back, and reporters have clocks of their own.
        there = self._exchange.report_names(self._method.kind)
        reports = list(self._exchange.reports([name for name in there if name not in self._read]))
        if not reports and tasks == self._document["tasks"]:
            return
        sized = replace(self._route, partitions=tasks)
        made = self._method.next(
            sized, self._document["content"], [content for _, content in reports]
        )
        reasons = made.reasons
        if tasks != self._document["tasks"]:
            reasons = (f"tasks in use {self._document['tasks']} -> {tasks}", *reasons)
        with self._advisory.attempt("a new table"):  # the last one is used on
            self._keep(made.content, tasks, reasons, reports[-1][0] if reports else after)
            self._read = set(there)

    def _keep(self, content: Document, tasks: int, reasons: tuple[str, ...], until: str) -> None:
        document: Document = {
            "route": self._route.to_json(),
            "tasks": tasks,  # in use; at most the route's partitions
            "content": content,
            "reasons": list(reasons),
            "reports_until": until,
        }
        self._version = self._exchange.write_table(document)
        self._document = document
