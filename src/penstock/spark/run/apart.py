"""A topology whose components run apart: its queries, its channels, and how it ends."""

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import networkx as nx
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.errors import InvalidInput, InvalidTopology
from penstock.model.plan import TopologyPlan
from penstock.model.plan_document import Group
from penstock.model.topology import Topology
from penstock.spark import handles
from penstock.spark.act.placed_tasks import PlacedTasks
from penstock.spark.act.placement import Placement
from penstock.spark.channels.entries import Entry
from penstock.spark.channels.log import Channel
from penstock.spark.checkpoint.plan_agreement import recorded_plan
from penstock.spark.compile.apart import BuiltApart, build_apart
from penstock.spark.compile.apart_split import Part
from penstock.spark.compile.builder import BuiltQuery, BuiltTopology
from penstock.spark.compile.fused import PlanChoice
from penstock.spark.compile.inspection import Reading
from penstock.spark.measure.batch_arrivals import BatchArrivals
from penstock.spark.measure.batch_work import TaskGroups
from penstock.spark.measure.ledger import Ledger, LedgerEntry, WrittenLedger
from penstock.spark.run.python_workers import start_python_workers
from penstock.spark.run.query_restarts import NOT_CONNECTED
from penstock.spark.run.together import Pace, RunningTopology
from penstock.spark.sinks.batch_writer import BatchWriter, ChannelSide
from penstock.spark.sources.offsets import Offset
from penstock.spark.sources.running.kinds import running_sources

log = logging.getLogger(__name__)

START_LIMIT_S = 60.0
ATTEMPTS = 4
STARTING = ("Initializing", "Getting offsets")  # what a query says before its sources answered


class RunningApart(RunningTopology):
    """One query for each component, each in a scheduler pool of its own.

    `processors` says how many each component begins with; those not named get one. A run "once"
    takes what sources hold at first and ends when nothing is left in any channel.
    """

    def __init__(
        self,
        topology: Topology,
        session: SparkSession,
        checkpoint: Path,
        pace: Pace = Pace(),  # noqa: B008 - frozen
        measured: bool = True,
        processors: Mapping[str, int] | None = None,
        max_rows: int | None = None,
        accept_changes: bool = False,
        choice: PlanChoice = PlanChoice(),  # noqa: B008 - frozen
    ) -> None:
        endless = [
            name
            for name, source in running_sources(topology).items()
            if not source.ends_at_once and name not in topology.feedbacks
        ]
        if pace.once and endless:
            raise InvalidTopology(
                f"source {endless[0]!r} does not report when it has been read to its end, so "
                "--once would never end with components run apart; leave --once out, or run "
                "together."
            )
        self._at_once = pace.once
        super().__init__(
            topology, session, checkpoint, replace(pace, once=False), measured, choice,
            accept_changes,
        )  # fmt: skip
        if choice.orders:
            log.warning("stateless operators keep their declared order where components run apart")
        self._processors = dict(processors or {})
        self._max_rows = max_rows
        self._reached: dict[str, dict[str, Offset]] = {}  # by query and source
        self._position = threading.Lock()
        self._tasks = PlacedTasks()

    def _build(self, reading: Reading) -> BuiltTopology:
        wanted, record = self._choice.plan, recorded_plan(self._checkpoint)
        if wanted is None and record is not None:
            wanted = record.fused_groups()
        self.apart = self._tried(reading, wanted)
        names = [part.component.name for part in self.apart.parts]
        for name in self._processors:
            if name not in names:
                raise InvalidInput(
                    f"processors names component {name!r}; known: {', '.join(names)}."
                )
        self._parallelism = {name: self._processors.get(name, 1) for name in names}
        for part in self.apart.parts:
            self._order_tasks(part)
        self._channels = {op: Channel(self._checkpoint.channel(op)) for op in self.apart.channels}
        return self.apart.built

    def _tried(
        self, reading: Reading, wanted: TopologyPlan | tuple[Group, ...] | None
    ) -> BuiltApart:
        return build_apart(
            self.topology, self.session,
            replace(self._as_begun(reading), at_once=self._at_once),
            self._checkpoint.channel, self._max_rows, wanted,
        )  # fmt: skip

    def _ledger(self) -> Ledger:
        return WrittenLedger(self.inputs, self._sources_behind())

    def _sources_behind(self) -> dict[str, set[str]]:
        graph = self.topology.graph()
        return {
            part.query: {
                source
                for sink in part.topology.sinks
                if sink.name in self.topology.sink_names
                for source in self.inputs.keys() & nx.ancestors(graph, sink.name)
            }
            for part in self.apart.parts
            if self._feeds_sink(part)
        }

    def part(self, query: str) -> Part:
        """The part that a query carries out."""
        return next(part for part in self.apart.parts if part.query == query)

    def parallelism(self) -> dict[str, int]:
        return dict(self._parallelism)

    def set_parallelism(self, wanted: Mapping[str, int]) -> None:
        known = self.parallelism()
        for name, count in wanted.items():
            if name not in known or count < 1:
                raise InvalidInput(
                    f"processors {count} for component {name!r}; known: {', '.join(known)}, each "
                    "with at least 1."
                )
        for name, count in wanted.items():
            self._parallelism[name] = count
        for part in self.apart.parts:
            if self._parallelism[part.component.name] != known[part.component.name]:
                self._order_tasks(part)

    def _order_tasks(self, part: Part) -> None:
        component = part.component.name
        sources = [source.name for source in part.topology.sources]
        replace(self.controls, component=component).order_tasks(
            sources, self._parallelism[component]
        )

    def _writer(self, query: BuiltQuery) -> BatchWriter:
        part = self.part(query.plan.name)
        arrivals = BatchArrivals(
            self._checkpoint.query(query.plan.name),
            running_sources(part.topology, self.epoch_s, self.sources),
            self.apart.looped(part),
        )
        self._recall(part, arrivals)
        return BatchWriter(
            query,
            self._records(part.query),
            self._calls(part.query, lambda batch_id: self._batch_written(part, arrivals, batch_id)),
            ChannelSide(f"{part.query}-{self._checkpoint.writer_id()}", arrivals.pass_on),
            partial(self._narrowed, part) if self.apart.narrows(part) else None,
        )

    def _narrowed(self, part: Part, batch: DataFrame, batch_id: int) -> DataFrame:
        component = part.component.name
        return self._tasks.narrowed(
            batch, batch_id, part.query, component, self._parallelism[component]
        )

    def place_key_groups(self, placements: list[Placement]) -> None:
        """From the next batches on, tasks work where these want their key groups to be.

        They are in the order of the queries; one that is started again gets another in its place.
        """
        names = [query.plan.name for query in self.built.queries]
        if placements:  # a cluster that cannot place has none
            self._tasks.placement = lambda query: placements[names.index(query)]

    def grouping(self, query: str, batch_id: int) -> TaskGroups | None:
        return self._tasks.grouping(query, batch_id)

    def _start_query(self, query: BuiltQuery, writer: BatchWriter) -> StreamingQuery:
        """Start one query after the other: the process of a source has ten seconds to come up.

        On a busy machine that may be too little; nothing has run then, so it is tried again.
        """
        context = self.session.sparkContext
        for attempt in range(ATTEMPTS):
            context.setLocalProperty(handles.POOL, query.plan.name)
            try:
                started = super()._start_query(query, writer)
            finally:
                context.setLocalProperty(handles.POOL, None)  # type: ignore[arg-type]  # takes it away
            _await_start(started)
            error = started.exception()
            if error is None or NOT_CONNECTED not in str(error) or attempt == ATTEMPTS - 1:
                break
        return started

    def _recall(self, part: Part, arrivals: BatchArrivals) -> None:
        """How far a query was when the run before this one ended."""
        where = self._checkpoint.query_folder(part.query) / "commits"
        done = [int(file.name) for file in where.glob("*") if file.name.isdigit()]
        offsets = arrivals.offsets(max(done)) if done else None
        if offsets is not None:
            self._reached[part.query] = offsets.ends

    def _batch_written(self, part: Part, arrivals: BatchArrivals, batch_id: int) -> None:
        self._written_last[part.query] = batch_id
        offsets = arrivals.offsets(batch_id)
        if offsets is not None:
            with self._position:
                self._reached[part.query] = offsets.ends
        # Rows that nothing came of are done with their batch.
        if self._feeds_sink(part) or not arrivals.passed_on(batch_id):
            entry = LedgerEntry(part.query, batch_id, arrivals.of(batch_id), time.time())
            if entry.rows > 0:
                self.ledger.record(entry)
        self._notify(self.after_batch, part.query, batch_id)

    def _feeds_sink(self, part: Part) -> bool:
        return any(one.name in self.topology.sink_names for one in part.topology.sinks)

    def reached(self) -> dict[str, dict[str, Offset]]:
        """How far each query has worked through each of its sources, outputs included."""
        with self._position:
            return {query: dict(offsets) for query, offsets in self._reached.items()}

    def published(self) -> dict[str, int]:
        """Rows in each channel since it was made."""
        with self._position:
            return {operator: channel.end_row() for operator, channel in self._channels.items()}

    def published_since(self, operator: str, sequence: int) -> list[Entry]:
        """What an operator published, from an entry of its channel on."""
        with self._position:
            return self._channels[operator].since(sequence)

    def last_published(self, operator: str, count: int) -> list[Entry]:
        """What an operator published last, as so many entries of its channel."""
        with self._position:
            return self._channels[operator].newest(count)

    def channel_backlog(self, component: str) -> int:
        """Rows published for a component and not worked through yet."""
        reached, published = self.reached(), self.published()
        return sum(
            published[operator] - _row(reached.get(part.query, {}).get(source))
            for part in self.apart.parts
            if part.component.name == component
            for source, operator in part.inputs.items()
        )

    def source_backlog(self, component: str, now_s: float) -> int:
        """Rows that arrived at sources and this component has not worked through."""
        reached = self.reached()
        return sum(
            self.inputs[source.name].waiting(reached.get(part.query, {}).get(source.name), now_s)
            for part in self.apart.parts
            if part.component.name == component
            for source in part.topology.sources
            if source.name not in part.inputs
        )

    def backlog(self, now_s: float) -> int:
        return sum(
            max(0, self.channel_backlog(name)) + max(0, self.source_backlog(name, now_s))
            for name in (part.component.name for part in self.apart.parts)
        )

    def finished(self) -> bool:
        """Whether all sources are worked off and nothing is left in any channel.

        A query's position is reported after its outputs are published. So if what was consumed,
        read first, equals what was published, read after it, then nothing is under way anywhere.
        """
        once_since_s = self._began_s if self._at_once else None
        reached = self.reached()
        published = self.published()
        for part in self.apart.parts:
            for source in part.topology.sources:
                offset = reached.get(part.query, {}).get(source.name)
                operator = part.inputs.get(source.name)
                if operator is not None and _row(offset) < published[operator]:
                    return False
                if operator is None and not self.inputs[source.name].finished(offset, once_since_s):
                    return False
        return True

    def _start(self) -> None:
        self._began_s = time.time()
        # While the process of a source starts, Spark 4.3 switches forking off for the whole driver;
        # tasks there that run Python for the first time just then would start an interpreter each,
        # for good.
        if str(self.session.sparkContext.master).startswith("local"):
            start_python_workers(self.session)
        super()._start()

    def wait(self, timeout_s: float | None = None, poll_s: float = 0.2) -> bool:
        """As of the base; then windows that the last watermarks close run down the channels."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while self.active and not self.finished():
            if not any(map(self._restarts.will_restart, self.queries)):
                self.raise_failure()  # the others would wait for ever for one that has failed
            if deadline is not None and time.monotonic() > deadline:
                return False
            time.sleep(poll_s)
        while not self._run_down():
            if deadline is not None and time.monotonic() > deadline:
                return False
            time.sleep(poll_s)
        self.raise_failure()
        return True

    def _run_down(self) -> bool:
        """Empty batches until no query publishes more; False if one has to be started again."""
        while True:
            before = self.published()
            if not self._through():
                return False
            if before == self.published():
                return True


def _row(offset: Offset | None) -> int:
    """How far a channel is read."""
    return 0 if offset is None else int(offset["row"])


def _await_start(query: StreamingQuery) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while query.isActive and query.status["message"].startswith(STARTING):
        if time.monotonic() > deadline:
            return
        time.sleep(0.05)


def parse_processors(text: str) -> dict[str, int]:
    """Processors as a person writes them.

    >>> parse_processors("extract=3,match=4")
    {'extract': 3, 'match': 4}
    """
    found: dict[str, int] = {}
    for item in text.split(","):
        name, equals, count = item.strip().partition("=")
        if not equals or not name or not count.isdigit() or int(count) < 1 or name in found:
            raise InvalidInput(
                f"processors is {text!r}; write COMPONENT=NUMBER,..., each once, as in "
                "extract=3,match=4."
            )
        found[name] = int(count)
    return found
