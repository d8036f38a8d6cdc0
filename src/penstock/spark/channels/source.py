"""The reader of a channel as a streaming source: an offset is a row number of the channel.

One instance lives in the source's runner process: it decides how far a batch goes and into how
many tasks it is cut, anew for each batch. What a task needs travels in its partition.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import IntegerType, StructType

from penstock.errors import InvalidInput
from penstock.spark.channels.chunks import read_piece
from penstock.spark.channels.header import FORMAT
from penstock.spark.channels.log import Channel, Piece
from penstock.spark.checkpoint.advisory_files import AdvisoryFiles
from penstock.spark.routes.method import OFFSET
from penstock.spark.routes.reading import RoutedReading
from penstock.spark.sources.control import TaskOrders


@dataclass(frozen=True)
class Pieces(InputPartition):
    """What one task reads."""

    parts: tuple[Piece, ...]
    lane: int = 0
    routes: str | None = None  # the version of its table, where rows are routed


class ChannelSource(DataSource):
    """`spark.readStream.format("penstock-channel")`.

    Options: `path`, the channel's directory; `reader`, the name under which it remembers how far
    this reader is; `max_rows` of a batch; `partitions` of a batch, and `control`, a JSON
    file whose orders overrule it at the next batch; `whole`, "true" if a published batch must not
    be divided (its rows carry a watermark); `name`, by which offsets name the channel.
    """

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def schema(self) -> StructType:
        """The columns of the rows that were published."""
        schema = StructType.fromJson(json.loads(self._channel().schema_json))
        routed = self._routed()
        return schema.add(routed.column, IntegerType()) if routed.in_lanes else schema

    def streamReader(self, schema: StructType) -> "ChannelReader":
        """The reader, made from options alone."""
        if "reader" not in self.options:
            raise InvalidInput("option reader is missing; name the reader of the channel.")
        routed = self._routed()
        # Routes are written by whoever reads.
        plain = StructType(schema.fields[:-1]) if routed.in_lanes else schema
        return ChannelReader(
            Path(self._path()),
            self.options["reader"],
            self._name(),
            _number(self.options, "max_rows"),
            _number(self.options, "partitions") or 1,
            TaskOrders.of(self.options),
            self.options.get("whole", "false") == "true",
            to_arrow_schema(plain, timezone="UTC"),
            routed,
        )

    def _name(self) -> str:
        return str(self.options.get("name", Path(self._path()).name))

    def _routed(self) -> RoutedReading:
        return RoutedReading.of(self.options, self._name())

    def _path(self) -> str:
        if "path" not in self.options:
            raise InvalidInput("option path is missing; name the directory of the channel.")
        return str(self.options["path"])

    def _channel(self) -> Channel:
        return Channel(Path(self._path()))


class ChannelReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Admits what was published, up to the limit of a batch."""

    def __init__(
        self,
        path: Path,
        reader: str,
        name: str,
        max_rows: int | None,
        partitions: int,
        orders: TaskOrders,
        whole: bool,
        columns: pa.Schema,
        routed: RoutedReading | None = None,
    ) -> None:
        self._path, self._reader, self._name = path, reader, name
        self._max_rows, self._partitions = max_rows, partitions
        self._orders, self._whole, self._columns = orders, whole, columns
        self._routed = routed or RoutedReading(name)
        self._advisory = AdvisoryFiles(f"reader {reader}")
        self._target: int | None = None
        self._opened: Channel | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Where this reader began, the same whenever it is asked."""
        return self._offset(self._channel().register(self._reader))

    def getDefaultReadLimit(self) -> ReadLimit:
        """The reader's own bound on a batch."""
        return ReadAllAvailable() if self._max_rows is None else ReadMaxRows(self._max_rows)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """How far the next batch goes."""
        first = int(start["row"])
        end = self._channel().end_row() if self._target is None else self._target
        if isinstance(limit, ReadMaxRows) and end > first + limit.max_rows:
            end = self._within(first, first + limit.max_rows, end)
        return self._offset(end) | self._routed.offset(start) if end > first else start

    def reportLatestOffset(self) -> dict[str, Any]:
        """What was published, admitted or not: the lag in the query's progress."""
        return self._offset(self._channel().end_row())

    def prepareForTriggerAvailableNow(self) -> None:
        """What is there now is all of it."""
        self._target = self._channel().end_row()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The range cut into as many parts as there are processors, none of them empty."""
        first, rows = int(start["row"]), int(end["row"]) - int(start["row"])
        wanted = self._orders.tasks(self._partitions)
        parts = min(wanted, rows)
        cuts = [first + rows * part // parts for part in range(parts + 1)] if parts > 0 else []
        return [
            Pieces(tuple(self._channel().pieces(a, b)), lane, end.get(OFFSET))
            for lane, (a, b) in enumerate(pairwise(cuts))
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a part."""
        assert isinstance(partition, Pieces)
        pieces = chain.from_iterable(map(read_piece, partition.parts))
        # Files say which columns are never null; a channel does not, and Spark takes no other.
        rows = (b if b.schema.equals(self._columns) else b.cast(self._columns) for b in pieces)
        yield from self._routed.routed(rows, partition.routes, partition.lane)

    def commit(self, end: dict[str, Any]) -> None:
        """The batches up to here are committed: they are never asked for again."""
        with self._advisory.attempt("removing what was read"):
            self._channel().advance(self._reader, int(end["row"]))

    def _within(self, first: int, most: int, end: int) -> int:
        """The last row allowed; the end of a published batch where none may be divided."""
        if not self._whole:
            return most
        ends = [entry.end_row for entry in self._channel().entries(first, end)]
        fitting = [row for row in ends if row <= most]
        return fitting[-1] if fitting else ends[0]

    def _offset(self, row: int) -> dict[str, Any]:
        # The channel's name is in the offset as progress reports name sources in no other way.
        return {"channel": self._name, "row": row}

    def _channel(self) -> Channel:
        if self._opened is None:
            self._opened = Channel(self._path)
        return self._opened

    def __getstate__(self) -> dict[str, Any]:
        """Tasks need no open channel."""
        return {**self.__dict__, "_opened": None}


def _number(options: Any, name: str) -> int | None:
    raw = options.get(name)
    if raw is None:
        return None
    try:
        value = int(raw)
    except ValueError:
        value = 0
    if value < 1:
        raise InvalidInput(f"option {name} is {raw!r}; give a whole number of at least 1.")
    return value
