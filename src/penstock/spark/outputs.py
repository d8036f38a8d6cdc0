"""What a batch leaves behind: the outputs of all its sinks, committed together, exactly once.

File sinks are first staged beside their target, where readers do not look. One commit record then
makes the whole batch true, and only after it are the staged directories renamed into place. A batch
repeated after a crash finishes what its record promised, or, without a record, starts over.
"""

import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Observation, Row
from pyspark.sql import functions as F

from penstock.errors import PenstockError
from penstock.model.sinks import Console, Files, ForeachBatch, Memory
from penstock.model.topology import SinkBinding
from penstock.spark.builder import BuiltQuery
from penstock.spark.checkpoint import write_atomically
from penstock.spark.survey import first_line

KEPT_COMMITS = 100  # Spark replays at most the last batch; the rest is for a person to read


class BatchWriter:
    """The function of (batch, id) that a query hands its batches to."""

    def __init__(
        self, query: BuiltQuery, commits: Path, done: Callable[[int], None] | None = None
    ) -> None:
        self._query = query
        self._commits = commits
        self._done = done
        self.memory: dict[str, dict[int, list[Row]]] = {
            sink.name: {} for sink in query.sinks if isinstance(sink.sink, Memory)
        }
        self.failure: str | None = None
        self.between_batches = threading.Lock()  # held while a batch is written
        self.closed = False

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Write a batch; after a crash the same batch may come again."""
        with self.between_batches:
            if self.closed:
                raise PenstockError("the run is being stopped")
            try:
                self._write(batch, batch_id)
            except Exception as error:
                self.failure = self.failure or first_line(error)
                raise

    def _write(self, batch: DataFrame, batch_id: int) -> None:
        record = self._commits / f"{batch_id}.json"
        if record.exists():
            # The outputs are promised already; the plan still has to run for its state's sake.
            batch.write.format("noop").mode("overwrite").save()
            self._publish(batch, json.loads(record.read_text(encoding="utf-8")))
        else:
            self._commit(batch, batch_id, record)
        stale = self._commits / f"{batch_id - KEPT_COMMITS}.json"
        stale.unlink(missing_ok=True)
        if self._done is not None:
            self._done(batch_id)

    def _commit(self, batch: DataFrame, batch_id: int, record: Path) -> None:
        several = len(self._query.sinks) > 1
        kept = batch.persist() if several else batch
        try:
            staged = {
                sink.name: self._deliver(self._query.part(kept, sink), sink, batch_id)
                for sink in self._query.sinks
            }
        finally:
            if several:
                kept.unpersist()
        promised = {
            name: {"staged": paths[0], "final": paths[1]}
            for name, paths in staged.items()
            if paths is not None
        }
        if promised:
            write_atomically(record, promised)
            self._publish(batch, promised)

    def _deliver(
        self, rows: DataFrame, binding: SinkBinding, batch_id: int
    ) -> tuple[str, str] | None:
        sink = binding.sink
        if isinstance(sink, Files):
            return self._stage(rows, binding.name, sink, batch_id)
        if isinstance(sink, ForeachBatch):
            try:
                sink.function(rows, batch_id)
            except Exception as error:
                self.failure = f"sink {binding.name!r}: function: {first_line(error)}"
                raise
        elif isinstance(sink, Console):
            rows.show(sink.rows, truncate=False)
        else:
            self.memory[binding.name][batch_id] = rows.collect()
        return None

    def _stage(
        self, rows: DataFrame, name: str, sink: Files, batch_id: int
    ) -> tuple[str, str] | None:
        staged = f"{sink.path}/_staged/{self._query.plan.name}-{name}-{batch_id}"
        final = f"{sink.path}/batch={batch_id}"
        files, path = _file_system(rows, final)
        if files.exists(path):
            raise PenstockError(
                f"sink {name!r}: {final} exists already and is not of this run; give the sink an "
                "empty directory, or the checkpoint it was written with."
            )
        seen = Observation()
        counted = rows.observe(seen, F.count(F.lit(1)).alias("rows"))
        counted.write.format(sink.format).mode("overwrite").save(staged)
        # The first batch is kept even when empty: it tells readers the schema.
        if batch_id > 0 and seen.get["rows"] == 0:
            files, path = _file_system(rows, staged)
            files.delete(path, True)
            return None
        return staged, final

    def _publish(self, batch: DataFrame, promised: dict[str, dict[str, str]]) -> None:
        """Rename what is staged; what is gone from the stage was renamed before."""
        for paths in promised.values():
            files, staged = _file_system(batch, paths["staged"])
            if files.exists(staged):
                files.rename(staged, _file_system(batch, paths["final"])[1])


def _file_system(frame: DataFrame, path: str) -> tuple[Any, Any]:
    """Hadoop's file system for a path, and the path as it wants it."""
    context = frame.sparkSession.sparkContext
    jvm: Any = context._jvm
    hadoop_path = jvm.org.apache.hadoop.fs.Path(path)
    return hadoop_path.getFileSystem(context._jsc.hadoopConfiguration()), hadoop_path


def rows_in_memory(writers: Sequence[BatchWriter], sink: str) -> list[Row]:
    """The rows a Memory sink holds, in the order of their batches."""
    for writer in writers:
        if sink in writer.memory:
            batches = writer.memory[sink]
            return [row for batch_id in sorted(batches) for row in batches[batch_id]]
    raise KeyError(sink)
