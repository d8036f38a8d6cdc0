"""One generated stream as a source: offsets are row numbers, so every range can be read again.

Beside the backend of many generated streams because a stream of those belongs to one lane, while
this one is cut into as many tasks as are wanted and needs no log. What both go by is in
generated_streams.

One instance lives in the source's runner process and decides how far a batch goes; another is
pickled to the executors and only reads. What a batch needs travels in its partitions.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from penstock.spark.routes.method import OFFSET
from penstock.spark.routes.reading import RoutedReading
from penstock.spark.sources.batch_choice import BatchChoices, Choice, dropped_rows, kept, seed_of
from penstock.spark.sources.control import TaskOrders
from penstock.spark.sources.generated_streams import COLUMNS, ROWS_PER_CHUNK, GeneratedStreams
from penstock.workloads.generator import Generator

FORMAT = "penstock-generator"
ONE = np.zeros(1, dtype=np.int64)  # the number of the only stream


@dataclass(frozen=True)
class RowRange(InputPartition):
    """The rows one task produces."""

    start: int
    end: int
    lane: int = 0
    routes: str | None = None  # the version of its table, where rows are routed
    choice: Choice = Choice()  # noqa: RUF009 - frozen


class GeneratorSource(DataSource):
    """`spark.readStream.format("penstock-generator")` with a generator and the stream's epoch."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def schema(self) -> str:
        """The columns of every generated stream."""
        return self._routed().schema(self._choices().schema(COLUMNS))

    def streamReader(self, schema: StructType) -> "GeneratorReader":
        """The reader, made from options alone."""
        generator = Generator.from_json(self.options["generator"])
        stream = self.options.get("stream", "generator")
        epoch_s = float(self.options["epoch_s"])
        reader = GeneratorReader(
            generator, epoch_s, stream, self._routed(), self._choices(),
            TaskOrders.of(self.options),
        )  # fmt: skip
        if self.options.get("at_once") == "true":
            reader.prepareForTriggerAvailableNow()
        return reader

    def _choices(self) -> BatchChoices:
        return BatchChoices.of(self.options, self.options.get("stream", "generator"))

    def _routed(self) -> RoutedReading:
        return RoutedReading.of(self.options, self.options.get("stream", "generator"))


class GeneratorReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Admits what has arrived by the clock, up to the limit of one batch."""

    def __init__(
        self,
        generator: Generator,
        epoch_s: float,
        stream: str,
        routed: RoutedReading,
        choices: BatchChoices | None = None,
        orders: TaskOrders | None = None,
    ) -> None:
        self._generator = generator
        self._generated = GeneratedStreams([generator], epoch_s)
        self._stream = stream
        self._routed = routed
        self._choices = choices or BatchChoices(stream)
        self._orders = orders or TaskOrders(None)
        self._target: int | None = None

    def initialOffset(self) -> dict[str, Any]:
        """The first row."""
        return self._offset(0)

    def getDefaultReadLimit(self) -> ReadLimit:
        """The generator's own bound on a batch."""
        most = self._generator.max_rows
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """How far the next batch goes."""
        if start.get("stream", self._stream) != self._stream:
            raise ValueError(
                f"the checkpoint is at stream {start['stream']!r}, not {self._stream!r}; declare "
                "sources in the order the checkpoint was created with"
            )
        if self._target is None and self._choices.waits():
            return start
        end = self._available() if self._target is None else self._target
        if isinstance(limit, ReadMaxRows):
            end = min(end, start["row"] + limit.max_rows)
        if end <= start["row"]:
            return start
        first, seed = start["row"], seed_of(self._stream)
        chosen = self._choices.offset(
            start, lambda share: dropped_rows(first, end - first, share, seed)
        )
        return self._offset(end) | self._routed.offset(start) | chosen

    def reportLatestOffset(self) -> dict[str, Any]:
        """How many rows have arrived, admitted or not: the lag in the query's progress."""
        return self._offset(self._available())

    def prepareForTriggerAvailableNow(self) -> None:
        """A bounded stream is available whole, whenever its rows would have arrived."""
        self._target = self._available(whole=True)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The range cut into as many parts as there are lanes, none of them empty."""
        first, rows = start["row"], end["row"] - start["row"]
        lanes = min(self._orders.tasks(self._generator.lanes), rows)
        cuts = [first + rows * lane // lanes for lane in range(lanes + 1)] if lanes > 0 else []
        choice = self._choices.choice(end)
        return [
            RowRange(a, b, lane, end.get(OFFSET), choice)
            for lane, (a, b) in enumerate(pairwise(cuts))
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Produce a range; the same range is the same rows, whoever asks and when."""
        assert isinstance(partition, RowRange)
        yield from self._routed.routed(self._produced(partition), partition.routes, partition.lane)

    def _produced(self, part: RowRange) -> Iterator[pa.RecordBatch]:
        for start in range(part.start, part.end, ROWS_PER_CHUNK):
            end = min(start + ROWS_PER_CHUNK, part.end)
            batch = self._generated.rows_of(0, start, end)
            if part.choice.shed > 0:
                mask = kept(start, end - start, part.choice.shed, seed_of(self._stream))
                batch = batch.filter(pa.array(mask))
            if batch.num_rows:
                yield self._choices.with_forms(batch, part.choice)

    def _offset(self, row: int) -> dict[str, Any]:
        # The stream's name is in the offset because progress reports name sources in no other way.
        return {"row": row, "stream": self._stream}

    def _available(self, whole: bool = False) -> int:
        return int(self._generated.arrived(ONE, time.time(), whole)[0][0])
