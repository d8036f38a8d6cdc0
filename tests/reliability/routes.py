"""What is disturbed, besides: tables of routes, of a source and of an operator behind a shuffle."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from penstock.model.route import Route
from penstock.spark.checkpoint import advisory_files
from penstock.spark.checkpoint.batch_offsets import keep_offsets
from penstock.spark.checkpoint.durable_files import remove_leftovers
from penstock.spark.routes import exchange as exchange_module
from penstock.spark.routes.exchange import RouteExchange
from penstock.spark.routes.table_versions import TIDY_S, RouteTableVersions

from .crash_points import Scenario
from .scenarios import SparkLog

ROUTE = Route("osg", key="key", partitions=2)
LAST = 6


class Routes(Scenario):
    """Each batch changes both tables; old ones are removed.

    A source's table is named by the offset that Spark logs, which may be lost with the power; that
    of the operator by a file of ours, which may not.
    """

    def prepare(self) -> None:
        self.now_s, self.tasks = 0.0, 1
        self.dealt: dict[int, str] = {}  # by batch: the table of the operator

    def run(self) -> None:
        exchange_module._cached.cache_clear()  # another process
        with self._warned():
            self._run()

    def _run(self) -> None:
        spark = SparkLog(self.directory / "query", self.disk)
        routes = self.directory / "routes"
        self.retried(lambda: remove_leftovers(routes))  # as who opens a checkpoint does
        source, inside = RouteExchange(routes / "rows"), RouteExchange(routes / "answers")
        of_source, of_inside = (
            RouteTableVersions(ROUTE, one, lambda: self.now_s, lambda: self.tasks)
            for one in (source, inside)
        )
        while True:
            number, before = spark.planned()
            if number < 0 or spark.committed(number):
                if number == LAST:
                    break
                number += 1
                self.now_s += 2 * TIDY_S
                self.tasks = 1 + number % 2
                table = self.retried(lambda last=before: of_source.version(last or None))
                spark.plan(number, table, 0)
            else:
                table = before
            self.retried(lambda n=number: inside.name(n, of_inside.version(None)))  # type: ignore[misc]
            assert source.read_table(table) is not None, "what an offset names is there"
            named = inside.named(number)
            assert named is not None
            assert inside.read_table(named) is not None
            assert self.dealt.setdefault(number, named) == named, "repeated by the same table"
            self.retried(lambda n=number: keep_offsets(spark.offsets, n))  # as a batch is written
            spark.commit(number)

    @contextmanager
    def _warned(self) -> Iterator[None]:
        """What goes on without a file says so, and raises nothing."""
        handler = logging.Handler()
        handler.emit = lambda record: self.failures.append(record.getMessage())  # type: ignore[method-assign]
        advisory_files.log.addHandler(handler)
        try:
            yield
        finally:
            advisory_files.log.removeHandler(handler)

    def abandon(self) -> None:
        """There is no lock: tables have one writer, which the checkpoint's lock sees to."""

    def result(self) -> Any:
        files = [len(list(self.directory.glob(f"routes/{name}/tables/*"))) for name in
                 ("rows", "answers")]  # fmt: skip
        # Tables and batches, and twice as many where a start made some and nothing was tidied yet.
        bounded = max(files) <= 4 * exchange_module.KEPT_TABLES
        return sorted(self.dealt), bounded
