"""A channel that another query writes, as a source in a run."""

import threading
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.errors import InvalidInput
from penstock.model.arrivals import Arrivals
from penstock.model.channels import FromChannel
from penstock.model.topology import Source
from penstock.spark.channels.entries import share
from penstock.spark.channels.header import FORMAT
from penstock.spark.channels.log import Channel
from penstock.spark.handles.analysed_plan import DELAY
from penstock.spark.sources.offsets import Offset
from penstock.spark.sources.running.source import Opening, RunningSource

WINDOW = "spark.timeWindow"  # how Spark marks a column that is a window
END = "__penstock_end"


class RunningChannel(RunningSource):
    """Rows bring along when they arrived at the outer sources, as long as the channel has them."""

    orders = frozenset({"tasks", "route_tasks"})
    counts_arrivals = True
    arrivals_expire = True

    def __init__(self, source: Source, reader: FromChannel) -> None:
        super().__init__(source)
        self._reader = reader
        self._opened: Channel | None = None
        self._lock = threading.Lock()  # whoever writes a batch and whoever measures both ask

    def open(self, session: SparkSession, opening: Opening) -> DataFrame:
        """A row number is the offset; the reader is registered, so that nothing is removed."""
        reader = self._reader
        options = {"path": reader.path, "reader": reader.reader, "name": self.name}
        if reader.max_rows is not None:
            options["max_rows"] = str(reader.max_rows)
        if reader.whole:
            options["whole"] = "true"
        with self._lock:
            self._channel().register(reader.reader)
        frame = self._routed(session, FORMAT, options | opening.options(self.name))
        if reader.watermark is not None and reader.watermark[0] in reader.windows:
            return _with_windows(frame, reader, *reader.watermark)
        for column in reader.windows:
            window = F.col(f"`{column}`").alias(column, metadata={WINDOW: True})
            frame = frame.withColumn(column, window)
        return frame if reader.watermark is None else frame.withWatermark(*reader.watermark)

    def held(self) -> AbstractContextManager[None]:
        return self._channel().held(self._reader.reader)

    def counted(self, now_s: float) -> tuple[int, float]:
        with self._lock:
            return self._channel().end_row(), now_s

    def rows_at(self, offset: Offset) -> int:
        return int(offset["row"])

    def waiting(self, offset: Offset | None, now_s: float) -> int:
        published, _ = self.counted(now_s)
        return published - self._read(offset)

    def arrivals(self, start: Offset | None, end: Offset) -> list[Arrivals]:
        first, last = self._read(start), self.rows_at(end)
        if last <= first:
            return []
        with self._lock:
            try:
                entries = self._channel().entries(first, last)
            except InvalidInput:  # an earlier batch, whose rows all readers have passed
                return []
        parts = (share(entry, first, last) for entry in entries)
        return [part for part in parts if part is not None]

    def _read(self, offset: Offset | None) -> int:
        if offset is not None:
            return self.rows_at(offset)
        with self._lock:
            return self._channel().register(self._reader.reader)

    def _channel(self) -> Channel:
        if self._opened is None:
            self._opened = Channel(Path(self._reader.path).absolute())
        return self._opened


def _with_windows(frame: DataFrame, reader: FromChannel, column: str, delay: str) -> DataFrame:
    """Windows whose ends are the watermark.

    Spark takes a watermark of a window column, and then reads its value wrongly; so the watermark
    is that of the ends, and the windows are marked as what it stands for.
    """
    timed = frame.withColumn(END, F.col(f"`{column}`.end")).withWatermark(END, delay)
    delay_ms = int(delay.split()[0])
    columns = []
    for name in frame.columns:
        metadata: dict[str, Any] = {WINDOW: True} if name in reader.windows else {}
        metadata |= {DELAY: delay_ms} if name == column else {}
        columns.append(
            F.col(f"`{name}`").alias(name, metadata=metadata) if metadata else f"`{name}`"
        )
    return timed.select(*columns)
