"""A topology that runs: its queries, its outputs, and how it ends."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.errors import InvalidTopology, documented
from penstock.model.plan import Orders
from penstock.model.plan_document import Group
from penstock.model.topology import Topology
from penstock.spark import handles
from penstock.spark.checkpoint.driver_lock import held_by_driver
from penstock.spark.checkpoint.last_batches import LastBatches
from penstock.spark.checkpoint.layout import Checkpoint, begun
from penstock.spark.checkpoint.operators import operators_record
from penstock.spark.checkpoint.plan_agreement import (
    agree_on_plan,
    identity,
    read_again_since,
    recorded_plan,
)
from penstock.spark.checkpoint.plan_record import together_with
from penstock.spark.checkpoint.room import have_room
from penstock.spark.checkpoint.superseded import Superseded
from penstock.spark.compile.builder import BuiltQuery, BuiltTopology, build
from penstock.spark.compile.fused import PlanChoice, ShapeGuard, possible_part, relaxed
from penstock.spark.compile.inspection import Reading
from penstock.spark.handles.messages import first_line
from penstock.spark.measure.batch_arrivals import BatchArrivals
from penstock.spark.measure.batch_work import TaskGroups
from penstock.spark.measure.consumption import Consumption
from penstock.spark.measure.ledger import Ledger, LedgerEntry, WrittenLedger
from penstock.spark.measure.progress import Reports
from penstock.spark.routes.exchange import RouteExchange
from penstock.spark.routes.frames import announce
from penstock.spark.routes.table_versions import RouteTableVersions
from penstock.spark.run.python_workers import start_python_workers_beside
from penstock.spark.run.query_restarts import QueryRestarts, query_failure
from penstock.spark.run.shared_folder import folders_of
from penstock.spark.sinks.batch_writer import (
    BatchCalls,
    BatchWriter,
    ChannelSide,
    rows_in_memory,
)
from penstock.spark.sinks.commit_records import CommitRecords
from penstock.spark.sinks.ownership import Outputs, held_outputs
from penstock.spark.sources.control import AT_FULL_SERVICE, Controls
from penstock.spark.sources.frames import announce_sources
from penstock.spark.sources.program import StreamsProgram
from penstock.spark.sources.running.kinds import running_sources
from penstock.spark.sources.watch import SourceWatch

log = logging.getLogger(__name__)

STOP_LIMIT_S = 60.0
COMMIT_LIMIT_S = 10.0


@dataclass(frozen=True)
class Pace:
    """When batches start: back to back, every `interval_s`, or once over what is there."""

    interval_s: float = 0.0
    once: bool = False


def _name_table(
    exchange: RouteExchange, tables: RouteTableVersions, _query: str, batch_id: int
) -> None:
    exchange.name(batch_id, tables.version(None))


class RunningTopology:
    """The queries of a topology under one checkpoint; a context manager that always stops them."""

    def __init__(
        self,
        topology: Topology,
        session: SparkSession,
        checkpoint: Path,
        pace: Pace = Pace(),
        measured: bool = True,
        choice: PlanChoice = PlanChoice(),  # noqa: B008 - frozen
        accept_changes: bool = False,
    ) -> None:
        self.topology = topology
        self.session = session
        self._pace = pace
        self._measured = measured
        self._choice = choice
        self._accept_changes = accept_changes  # of operators that make state
        self._written_last: dict[str, int] = {}  # batch by query
        self._checkpoint = Checkpoint(checkpoint)
        self._writers: list[BatchWriter] = []
        self._guards: dict[str, ShapeGuard] = {}  # by query, of those that are fused
        self._ending = threading.Lock()
        self._held = ExitStack()  # what no other run may read meanwhile
        self.queries: list[StreamingQuery] = []
        self.stop_limit_s = STOP_LIMIT_S  # for a batch to end in, once this is to stop
        self.pool: str | None = None  # of the scheduler, where others share the session
        self._reports: Reports | None = None
        self._unfollow: Callable[[], None] = lambda: None
        self._restarts = QueryRestarts(
            lambda: self.queries,
            self._restart,
            lambda: have_room(folders_of(topology, self._checkpoint.directory).values()),
        )
        self.when_built: list[Callable[[BuiltTopology], None]] = []  # may refuse; nothing runs yet
        self.after_restart: list[Callable[[int], None]] = []  # called with the query's place
        self.before_batch: list[Callable[[str, int], None]] = []  # called by the query's thread
        self.after_batch: list[Callable[[str, int], None]] = []  # likewise

    def __enter__(self) -> Self:
        self._checkpoint.__enter__()
        try:
            self._held.enter_context(held_by_driver(self.session, self._checkpoint))
            self._outputs = self._held.enter_context(self._held_outputs())
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _held_outputs(self) -> AbstractContextManager[Outputs]:
        goes_on = begun(self._checkpoint.directory)
        return held_outputs(self.topology, self._checkpoint.writer_id(), goes_on)

    def _start(self) -> None:
        self.epoch_s = self._checkpoint.epoch_s(time.time())
        announce(self.session, self._checkpoint.routes)
        announce_sources(self.session, self._checkpoint.sources)
        self.sources = SourceWatch(self._checkpoint.sources, of_new_run=True)
        self.inputs = running_sources(self.topology, self.epoch_s, self.sources)
        for source in self.inputs.values():
            self._held.enter_context(source.held())
        self.controls = Controls(self._checkpoint.sources)
        self.controls.order(self._obeying("shed"), **AT_FULL_SERVICE)
        if self.pool is not None:
            self.send_parallelism(1)  # until it is given more: others run already
        reading = Reading(self.epoch_s, self._measured, self.controls)
        start_python_workers_beside(self.session)
        try:
            self._plan(reading)
        except InvalidTopology as reason:
            if not self._choice.if_possible:
                raise
            self._plan_in_part(reading, reason)
        for looks in self.when_built:
            looks(self.built)
        self._deal_inside()
        superseded = Superseded(self._checkpoint)
        self._consumption = Consumption(self.inputs, self.built, lambda: self.queries)
        self.ledger = self._ledger()
        self._reports = Reports(self.ledger, self._foreign_sources())
        self._unfollow = handles.follow_progress(self.session, self._reports.receive)
        self._writers = [self._writer(query) for query in self.built.queries]
        for writer in self._writers:
            with documented("reliability"):
                writer.refuse_what_is_ahead()
        self._last_batches = LastBatches(self._checkpoint, self._query_names())
        for query, writer in zip(self.built.queries, self._writers, strict=True):
            self.queries.append(self._start_query(query, writer))
        self._restarts.start()
        self.after_batch.append(superseded.batch_written)

    def _deal_inside(self) -> None:
        """Name the table of each batch for operators whose rows are dealt behind a shuffle."""
        for operator in self.topology.operators:
            if operator.route is not None:
                exchange = RouteExchange(self._checkpoint.routes / operator.name)
                tables = RouteTableVersions(operator.route, exchange)
                tables.version(None)
                self.before_batch.insert(0, partial(_name_table, exchange, tables))

    def _plan_in_part(self, reading: Reading, refused: InvalidTopology) -> None:
        """Build what is possible of a proposal that was refused as a whole."""

        for choice in possible_part(self._choice, partial(self._tried, reading), refused):
            self._choice = choice
            try:
                self._plan(reading)
            except InvalidTopology as reason:
                if choice.plan is None:
                    raise
                log.warning("the groups that are possible cannot be taken up: %s", reason)
            else:
                return

    def _tried(self, reading: Reading, groups: tuple[Group, ...]) -> object:
        """What these groups would run as; refused where they cannot."""
        reading = self._as_begun(reading)
        return build(self.topology, self.session, reading, groups, tasks=self._tasks_at_once())

    def _plan(self, reading: Reading) -> None:
        """Build what is wanted, if it fits the checkpoint."""
        self.built = self._build(reading)
        known = {name: source.identity for name, source in self.inputs.items()}
        self._checkpoint.check_identity(identity(self.topology, self.built, self.session, known))
        made_by = operators_record(self.topology, self.built.inspection.operators)
        self._checkpoint.check_operators(made_by, self._accept_changes)
        agree_on_plan(
            self.built, self._checkpoint, self.session, self._choice.apply
        )  # fmt: skip

    def send_parallelism(self, processors: int) -> None:
        self.controls.order_tasks(self._obeying("tasks"), processors)

    def send_orders(self, what: dict[str, Any]) -> None:
        """Order something else of all sources than before, as fields of `Control`."""
        self.controls.order(self._obeying(*what), **what)

    def grouping(self, query: str, batch_id: int) -> TaskGroups | None:
        """The key groups of each task of a batch; None: one each."""
        return None

    def _obeying(self, *fields: str) -> list[str]:
        """Sources that can be given such orders."""
        return [name for name, source in self.inputs.items() if source.orders.issuperset(fields)]

    def _query_names(self) -> list[str]:
        return [query.plan.name for query in self.built.queries]

    def _ledger(self) -> Ledger:
        kind = WrittenLedger if self._reads_channels else Ledger
        return kind(self.inputs, self._sources_behind())

    def _sources_behind(self) -> dict[str, set[str]]:
        """The sources behind each query that writes to sinks of the topology."""
        return {
            query.plan.name: self.inputs.keys() & query.sharing.copies.keys()
            for query in self.built.queries
        }

    def _foreign_sources(self) -> dict[str, set[str]]:
        """Of each query, those that do not count what arrives."""
        return {
            query: {name for name in names if not self.inputs[name].counts_arrivals}
            for query, names in self._sources_behind().items()
        }

    @property
    def _reads_channels(self) -> bool:
        """Then rows bring along when they arrived, which only writers of batches know in time."""
        return any(source.arrivals_expire for source in self.inputs.values())

    def _build(self, reading: Reading) -> BuiltTopology:
        wanted = self._choice.plan
        record = recorded_plan(self._checkpoint)
        if wanted is None and record is not None and record.fingerprints:
            wanted = record.plan
        orders = self._orders(record.orders if record is not None else ())
        reading = self._as_begun(reading)
        return build(self.topology, self.session, reading, wanted, orders, self._tasks_at_once())

    def _as_begun(self, reading: Reading) -> Reading:
        """Sources are read again, or shared, as they were since the checkpoint began."""
        return replace(reading, again=read_again_since(self._checkpoint))

    def _tasks_at_once(self) -> int | None:
        """As many as run at once, where there is one executor; elsewhere key groups are placed."""
        context = self.session.sparkContext
        return context.defaultParallelism if str(context.master).startswith("local") else None

    def _orders(self, before: Orders) -> Orders:
        """The orders that are wanted, and of other runs those they ran in before."""
        if self._choice.as_declared:
            return ()
        return together_with(self._choice.orders, before)

    def _writer(self, query: BuiltQuery) -> BatchWriter:
        name = query.plan.name
        arrivals = self._arrivals(query, self.topology)
        return BatchWriter(
            query,
            self._records(name),
            self._calls(name, lambda batch_id: self._written(name, batch_id, arrivals)),
            ChannelSide(f"{name}-{self._checkpoint.writer_id()}", arrivals.summary),
        )

    def _records(self, query: str) -> CommitRecords:
        offsets = self._checkpoint.query_folder(query) / "offsets"
        return CommitRecords(self._checkpoint.commits(query), offsets)

    def _calls(self, query: str, written: Callable[[int], None]) -> BatchCalls:
        return BatchCalls(
            lambda batch_id: self._notify(self.before_batch, query, batch_id),
            lambda: self._check(query),
            written,
        )

    def _check(self, query: str) -> None:
        """Refuse a batch that Spark planned otherwise, or whose files would be among another's."""
        mine = next(one for one in self.built.queries if one.plan.name == query)
        self._outputs.check({sink.name for sink in mine.sinks})
        guard = self._guards.get(query)
        if guard is not None:
            guard()

    def _arrivals(self, query: BuiltQuery, topology: Topology) -> BatchArrivals:
        where = self._checkpoint.query(query.plan.name)
        return BatchArrivals(where, running_sources(topology, self.epoch_s, self.sources))

    def _restart(self, place: int) -> bool:
        """Start a query again that ended; False if the run is ending itself."""
        with self._ending:
            if self._reports is None:
                return False
            writer = self._writers[place]
            failed, writer.failure = writer.failure, None  # what ends it next is another one
            try:
                self.queries[place] = self._start_query(self.built.queries[place], writer)
            except BaseException:
                writer.failure = failed  # it is still what ended the query
                raise
        for look in self.after_restart:
            look(place)
        return True

    def _start_query(self, query: BuiltQuery, writer: BatchWriter) -> StreamingQuery:
        name = query.plan.name
        if query.shape is not None:
            self._guards[name] = ShapeGuard(query.shape, name)
        stream = query.frame.writeStream.foreachBatch(writer).outputMode(query.plan.output_mode)
        stream = stream.option("checkpointLocation", self._checkpoint.query(name)).queryName(name)
        if self._pace.once:
            stream = stream.trigger(availableNow=True)
        else:
            stream = stream.trigger(processingTime=f"{self._pace.interval_s:.3f} seconds")
        # Reuse can hide a watermark from state above it; see assembly.py for when it is safe.
        if self.pool is not None:  # of this thread, which another may be that starts it again
            self.session.sparkContext.setLocalProperty(handles.POOL, self.pool)
        reuse = "true" if query.sharing.shared else "false"
        self.session.conf.set("spark.sql.exchange.reuse", reuse)
        try:
            with relaxed(self.session, query.shape is not None, query.row_by_row):
                started = stream.start()
        except PySparkException as error:
            raise InvalidTopology(f"query {name!r}: {first_line(error)}") from error
        if name in self._guards:
            self._guards[name].follow(started)
        self.reports.follow(str(started.id), name, time.time())
        return started

    def _written(self, query: str, batch_id: int, arrivals: BatchArrivals) -> None:
        self._written_last[query] = batch_id
        if self._reads_channels:
            self.ledger.record(
                LedgerEntry(query, batch_id, arrivals.of(batch_id), time.time())
            )  # fmt: skip
        else:
            self.ledger.committed(query, batch_id, time.time())
        self._notify(self.after_batch, query, batch_id)

    def _notify(self, whom: list[Callable[[str, int], None]], query: str, batch_id: int) -> None:
        for look in whom:
            try:
                look(query, batch_id)
            except Exception as error:  # noqa: BLE001 - whoever looks on must not end the query
                log.warning("at batch %s of %s: %s", batch_id, query, first_line(error))

    @property
    def routes_folder(self) -> Path:
        """Where the tables of routes are, by source."""
        return self._checkpoint.routes

    def use_tasks(self, source: str, tasks: int) -> None:
        self.controls.of(source).order(route_tasks=tasks)

    def rows(self, sink: str) -> list[Row]:
        """What a Memory sink holds."""
        return rows_in_memory(self._writers, sink)

    @property
    def reports(self) -> Reports:
        """What Spark reports of this run's batches."""
        assert self._reports is not None, "the topology is not running"
        return self._reports

    @property
    def active(self) -> bool:
        """Whether any query still runs, or is about to again."""
        return any(q.isActive or self._restarts.will_restart(q) for q in self.queries)

    @property
    def streams(self) -> StreamsProgram:
        """Streams that join and leave while the topology runs."""
        return StreamsProgram(self._checkpoint.sources, self._obeying("added"))

    def finished(self) -> bool:
        """Whether all sources are bounded streams and every query has taken all their rows."""
        return self._consumption.finished()

    def shed_rows(self) -> int | None:
        """Rows shed since the checkpoint was begun; None before a batch has ended."""
        return self._consumption.shed_rows()

    def backlog(self, now_s: float) -> int:
        """Rows that arrived at sources that report them and are in no committed batch yet."""
        return self._consumption.backlog(now_s)

    def checkpoint_of(self, query: BuiltQuery) -> str:
        """Where Spark keeps the checkpoint of a query."""
        return self._checkpoint.query(query.plan.name)

    def wait(self, timeout_s: float | None = None, poll_s: float = 0.2) -> bool:
        """Until all bounded streams are worked off, or all queries ended, or the time is over.

        A run over what is there ends by itself, after a last batch for what the watermark closes.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while self.active and (self._pace.once or not self.finished()):
            if deadline is not None and time.monotonic() > deadline:
                return False
            time.sleep(poll_s)
        while not self._through():
            if deadline is not None and time.monotonic() > deadline:
                return False
            time.sleep(poll_s)
        self.raise_failure()
        return True

    def _through(self) -> bool:
        """Have all queries do what is left; False if one has to be started again for that."""
        # Every one is asked: those behind one that waits for room need not wait with it.
        through = [self._is_through(query) for query in self.queries]
        return all(through)

    def _is_through(self, query: StreamingQuery) -> bool:
        """Whether a query did what is left, or has failed for good, which is raised later.

        A last batch without rows emits what the final watermark closes.
        """
        if not query.isActive:
            return not self._restarts.will_restart(query)
        if self._pace.once:
            return False  # it ends by itself
        try:
            query.processAllAvailable()
        except PySparkException:
            return query.exception() is None  # else it is about to end
        return True

    def settle(self, limit_s: float = 30.0) -> None:
        """Until the reports of all batches that ended have come in; they are sent as events."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline and not all(map(self.reports.caught_up, self.queries)):
            time.sleep(0.05)

    def raise_failure(self) -> None:
        """Raise one sentence if a query failed."""
        for query, writer in zip(self.queries, self._writers, strict=True):
            error = query.exception()
            if error is not None and not self._restarts.will_restart(query):
                failed = writer.failure
                cause = error if failed is None else failed.error
                raise query_failure(query.name, error, failed, self.topology) from cause

    def _await_commit(self, query: StreamingQuery) -> None:
        """Until Spark has noted the batch that was written last, so that it is not done again."""
        last = self._written_last.get(query.name)
        if last is None:
            return
        noted = self._checkpoint.query_folder(query.name) / "commits" / str(last)
        deadline = time.monotonic() + COMMIT_LIMIT_S
        while query.isActive and not noted.exists() and time.monotonic() < deadline:
            time.sleep(0.02)

    def stop(self) -> None:
        """Stop between two batches, so that no output is cut short; may be called twice."""
        self._restarts.stop()
        with self._ending:
            for writer in self._writers:
                # A sink that hangs must not keep everything else from ending.
                held = writer.between_batches.acquire(timeout=self.stop_limit_s)
                writer.closed = True
                if held:
                    writer.between_batches.release()
            try:
                for query in self.queries:
                    self._await_commit(query)
                    with suppress(PySparkException):  # it did not stop in time; the session will
                        query.stop()
                if self.queries and not any(query.isActive for query in self.queries):
                    handed = (writer.handed for writer in self._writers)
                    self._last_batches.ended(dict(zip(self._query_names(), handed, strict=True)))
            finally:
                if self._reports is not None:
                    self._unfollow()
                    self._reports = None
                self.queries = []
                self._held.close()
                self._checkpoint.__exit__(None, None, None)
