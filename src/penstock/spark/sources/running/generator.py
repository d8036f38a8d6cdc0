"""A generated stream in a run."""

from dataclasses import replace

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from penstock.model.arrivals import Arrivals
from penstock.model.topology import Source
from penstock.spark.sources.generated_streams import GeneratedStreams
from penstock.spark.sources.generator_source import FORMAT
from penstock.spark.sources.offsets import Offset
from penstock.spark.sources.running.source import Opening, RunningSource
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant


class RunningGenerator(RunningSource):
    """Knows everything at any moment, as it goes by the clock."""

    orders = frozenset({"tasks", "route_tasks", "interval_s", "shed", "cheaper", "forms"})
    counts_arrivals = True
    ends_at_once = True
    comes_evenly = True

    def __init__(self, source: Source, generator: Generator, epoch_s: float) -> None:
        super().__init__(source)
        self._generator, self._epoch_s = generator, epoch_s
        self._generated = GeneratedStreams([generator], epoch_s)

    @property
    def identity(self) -> str:
        """All of it: rows are made from it."""
        return self._generator.to_json()

    @property
    def rows_in_all(self) -> int | None:
        return self._generator.rows

    def open(self, session: SparkSession, opening: Opening) -> DataFrame:
        """A row number is the offset."""
        options = {
            "generator": self._generator.to_json(),
            "epoch_s": repr(self._epoch_s),
            "stream": self.name,
            "at_once": str(opening.at_once).lower(),
        }
        return self._routed(session, FORMAT, options | opening.options(self.name))

    def counted(self, now_s: float) -> tuple[int, float]:
        return self._arrived(now_s), now_s

    def rows_at(self, offset: Offset) -> int:
        return int(offset["row"])

    def waiting(self, offset: Offset | None, now_s: float) -> int:
        return self._arrived(now_s) - self._read(offset)

    def finished(self, offset: Offset | None, once_since_s: float | None = None) -> bool:
        """Whether all rows are read; of a stream without end, those there when it was opened."""
        end = self._generator.rows
        if end is None and once_since_s is not None:
            end = self._arrived(once_since_s)
        return end is not None and self._read(offset) >= end

    def arrivals(self, start: Offset | None, end: Offset) -> list[Arrivals]:
        """A row's number says when it arrived."""
        first, last = self._read(start), self._read(end)
        return [self._generated.arrivals(0, first, last)] if last > first else []

    def sample(self, batches: int, rows: int, span_s: float) -> Generator:
        """A generator can be asked for the same rows again."""
        return replace(few(self._generator, batches * rows, span_s), max_rows=rows)

    def _read(self, offset: Offset | None) -> int:
        return 0 if offset is None else self.rows_at(offset)

    def _arrived(self, now_s: float) -> int:
        return int(self._generated.arrived(np.zeros(1, dtype=np.int64), now_s)[0][0])


def few(stream: Generator, rows: int, span_s: float) -> Generator:
    """A stream of the same keys that has so many rows in so many seconds."""
    return replace(stream, rows=rows, rate=constant(rows / span_s))
