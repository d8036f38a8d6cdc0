"""What a batch leaves behind: the outputs of all its sinks, committed together, exactly once.

The files of all file sinks are staged first. One commit record then makes the whole batch true,
and only after it are the staged directories renamed into place. A batch repeated after a crash
finishes what its record promised, or, without a record, starts over.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame, Row
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from penstock.errors import PenstockError
from penstock.model.arrivals import Arrivals
from penstock.model.plan import QueryPlan
from penstock.model.sinks import Console, Files, ForeachBatch, Memory, ToChannel
from penstock.model.topology import SinkBinding
from penstock.spark.channels import publishing
from penstock.spark.channels.log import Channel
from penstock.spark.cluster.session import temporary_settings
from penstock.spark.sinks import files as file_sink
from penstock.spark.sinks.commit_records import CommitRecords, Promises
from penstock.spark.sinks.files import Target, TaskWriter
from penstock.spark.sinks.tagging import TAG
from penstock.spark.sinks.written_ahead import refuse_what_is_ahead

# To see how many bytes a batch of Arrow has, Spark asks each of its columns after each row, and
# rows on their way to files have those of all sinks. So their number is bounded alone, as it is in
# Spark unless it is told otherwise; a task's rows are all held until they are written anyway.
UNMEASURED = {
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
}


class QueryOutput(Protocol):
    """A query as its sinks see it: which sinks, and which rows of a batch are whose."""

    @property
    def plan(self) -> QueryPlan:
        """Its name, and its components."""

    @property
    def sinks(self) -> tuple[SinkBinding, ...]:
        """All that get rows of this query."""

    @property
    def stateful(self) -> bool:
        """Whether a batch changes state."""

    @property
    def tagged(self) -> bool:
        """Whether the rows of several nodes come in one frame."""

    def part_schema(self, sink: SinkBinding) -> StructType:
        """Of the rows of one sink."""

    def part(self, batch: DataFrame, sink: SinkBinding) -> DataFrame:
        """The rows of one sink in a batch."""


@dataclass(frozen=True)
class ChannelSide:
    """What a query passes to the channels it writes to: who it is, and when its rows arrived."""

    writer: str
    arrivals: Callable[[int], Arrivals | None]


@dataclass(frozen=True)
class BatchCalls:
    """What a run has called for each batch of a query, in the query's own thread."""

    begin: Callable[[int], None]  # before it runs
    check: Callable[[], None]  # may refuse to have it written
    written: Callable[[int], None]  # after everything of it is in place


@dataclass(frozen=True)
class BatchFailure:
    """What ended a batch while it was written."""

    batch_id: int
    error: Exception
    sink: str | None = None  # whose function failed, if one did


class BatchWriter:
    """The function of (batch, id) that a query hands its batches to.

    `narrowed`, if given, puts the last stage of a batch into as many tasks as it may have.
    """

    def __init__(
        self,
        query: QueryOutput,
        records: CommitRecords,
        calls: BatchCalls,
        side: ChannelSide | None = None,
        narrowed: Callable[[DataFrame, int], DataFrame] | None = None,
    ) -> None:
        self._query = query
        self._records = records
        self._calls = calls
        self._side = side
        self._who = query.plan.name if side is None else side.writer  # where runs share a place
        self._narrowed = narrowed
        self._files = [sink for sink in query.sinks if isinstance(sink.sink, Files | ToChannel)]
        self._others = [sink for sink in query.sinks if sink not in self._files]
        for sink in self._files:
            if isinstance(sink.sink, ToChannel):
                schema = publishing.schema_json(query.part_schema(sink))
                channel = Channel.create(Path(sink.sink.path).absolute(), schema)
                file_sink.sweep(str(channel.directory), f"{self._who}-{sink.name}-")
        self.memory: dict[str, dict[int, list[Row]]] = {
            sink.name: {} for sink in query.sinks if isinstance(sink.sink, Memory)
        }
        self.failure: BatchFailure | None = None
        self.between_batches = threading.Lock()  # held while a batch is written
        self.closed = False
        self.handed: int | None = None  # the last batch that may have reached a sink

    def refuse_what_is_ahead(self) -> None:
        """Refuse to start over what batches wrote that the checkpoint knows nothing of."""
        writer = None if self._side is None else self._side.writer
        refuse_what_is_ahead(self._query.plan.name, self._query.sinks, self._records, writer)

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Write a batch; after a crash the same batch may come again."""
        with self.between_batches:
            if self.closed:
                raise PenstockError("the run is being stopped")
            try:
                self._write(batch, batch_id)
            except Exception as error:
                self.failure = self.failure or BatchFailure(batch_id, error)
                raise

    def _write(self, batch: DataFrame, batch_id: int) -> None:
        """The steps of a batch; a crash between any two is made good when the batch comes again.

        1. Observers are notified that it begins.
        2. It is refused if Spark planned it otherwise than it should have.
        3. A record says what was promised when it came before; it is refused if the record is of
           other offsets.
        4. It runs: without a record its files are staged and all other sinks served; with one it
           runs for the sake of its state alone.
        5. What Spark logged of it is synced, and its record written, if it has files. From here on
           the batch is true.
        6. What the record promises is put in place.
        7. The record that is too old for anybody goes.
        8. Observers are notified that it is written.
        """
        self._calls.begin(batch_id)
        self._calls.check()
        self.handed = batch_id
        promised = self._records.promised(batch_id)
        if self._narrowed is not None:
            # Tasks of several key groups one after the other: state stays where its partition is.
            batch = self._narrowed(batch, batch_id)
        if promised is None:
            promised = self._serve(batch, batch_id)
            if self._files:
                self._records.keep_offsets(batch_id)
            if promised:
                self._records.write(batch_id, promised)
        else:
            _run(batch)
        self._publish(promised)
        self._records.forget_before(batch_id)
        self._calls.written(batch_id)

    def _serve(self, batch: DataFrame, batch_id: int) -> Promises:
        """Stage what goes into files, hand the other sinks their rows; what is to be published."""
        if len(self.memory) == len(self._query.sinks) > 1:
            self._remember(batch, batch_id)
            return {}
        # Who looks at a batch may look at part of it; its state has to be written whole, and once.
        looks = any(isinstance(sink.sink, Console | ForeachBatch) for sink in self._others)
        whole_first = looks and self._query.stateful
        keep = whole_first or len(self._others) + bool(self._files) > 1
        kept = batch.persist() if keep else batch
        try:
            if whole_first:
                _run(kept)
            promised = self._stage(kept, batch_id) if self._files else {}
            for sink in self._others:
                self._deliver(self._query.part(kept, sink), sink, batch_id)
        finally:
            if keep:
                kept.unpersist()
        return promised

    def _remember(self, batch: DataFrame, batch_id: int) -> None:
        """One job for all sinks where all are in memory; one each would ask every task again."""
        rows = batch.collect()
        for sink in self._query.sinks:
            mine = sink.upstream
            self.memory[sink.name][batch_id] = (
                [row[mine] for row in rows if row[TAG] == mine] if self._query.tagged else rows
            )

    def _stage(self, batch: DataFrame, batch_id: int) -> Promises:
        """Run the batch once, writing the files of all file sinks; what is to be published."""
        targets = tuple(self._target(sink, batch_id) for sink in self._files)
        finals = {one.sink: f"{one.directory}/batch={batch_id}" for one in targets}
        for one in targets:
            if one.format != "arrow" and file_sink.exists(finals[one.sink]):
                raise PenstockError(
                    f"sink {one.sink!r}: {finals[one.sink]} exists already and was not written "
                    "by this run; give the sink an empty directory, or the checkpoint it was "
                    "written with."
                )
        with temporary_settings(batch.sparkSession, UNMEASURED):
            written = batch.mapInArrow(TaskWriter(targets, TAG), file_sink.REPORT_SCHEMA)
            reports = written.collect()
        promised: Promises = {}
        for sink, one in zip(self._files, targets, strict=True):
            files = [report.file for report in reports if report.sink == one.sink]
            if isinstance(sink.sink, ToChannel) and files:
                assert self._side is not None
                file_sink.gather(one, files, None)
                promised[one.sink] = publishing.promise(
                    one, publishing.reported(one, reports), self._side.writer, batch_id,
                    self._side.arrivals(batch_id), self._records.digest(batch_id),
                )  # fmt: skip
            # The first batch is published even when empty: it gives readers the schema.
            elif isinstance(sink.sink, Files) and (files or batch_id == 0):
                schema = to_arrow_schema(self._query.part(batch, sink).schema, timezone="UTC")
                file_sink.gather(one, files, schema)
                promised[one.sink] = {"gathered": one.gathered, "final": finals[one.sink]}
            else:
                file_sink.discard(one)
        return promised

    def _target(self, sink: SinkBinding, batch_id: int) -> Target:
        assert isinstance(sink.sink, Files | ToChannel)
        node = sink.upstream if self._query.tagged else None
        return file_sink.target(sink.sink, sink.name, node, self._who, batch_id)

    def _deliver(self, rows: DataFrame, binding: SinkBinding, batch_id: int) -> None:
        sink = binding.sink
        if isinstance(sink, ForeachBatch):
            try:
                sink.function(rows, batch_id)
            except Exception as error:
                self.failure = BatchFailure(batch_id, error, binding.name)
                raise
        elif isinstance(sink, Console):
            rows.show(sink.rows, truncate=False)
        else:
            self.memory[binding.name][batch_id] = rows.collect()

    def _publish(self, promised: Promises) -> None:
        for paths in promised.values():
            if "channel" in paths:
                publishing.keep_promise(paths)
            else:
                file_sink.publish(paths["gathered"], paths["final"])


def _run(batch: DataFrame) -> None:
    """All of a batch, for the sake of its state."""
    batch.write.format("noop").mode("overwrite").save()


def rows_in_memory(writers: Sequence[BatchWriter], sink: str) -> list[Row]:
    """The rows a Memory sink holds, in the order of their batches."""
    for writer in writers:
        if sink in writer.memory:
            batches = writer.memory[sink]
            return [row for batch_id in sorted(batches) for row in batches[batch_id]]
    raise KeyError(sink)
