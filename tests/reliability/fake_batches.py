"""Batches and a query as the writer of batches sees them, without Spark."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.types import LongType, StructField, StructType

from penstock.model.plan import QueryPlan
from penstock.model.topology import SinkBinding

SCHEMA = StructType([StructField("n", LongType())])


@dataclass(frozen=True)
class Reports:
    """What tasks reported."""

    rows: list[Row]

    def collect(self) -> list[Row]:
        return self.rows


class NoSettings:
    """A session whose settings nobody reads."""

    @property
    def conf(self) -> "NoSettings":
        return self

    def get(self, _: str, default: None) -> None:
        return default

    def set(self, _: str, __: str) -> None:
        pass

    def unset(self, _: str) -> None:
        pass


@dataclass(frozen=True)
class FakeBatch:
    """Numbers, in two tasks if they are more than two."""

    numbers: list[int]

    @property
    def sparkSession(self) -> NoSettings:
        return NoSettings()

    @property
    def schema(self) -> StructType:
        return SCHEMA

    def mapInArrow(self, function: Callable[[Iterator[pa.RecordBatch]], Any], _: str) -> Reports:
        half = len(self.numbers) // 2 if len(self.numbers) > 2 else 0
        reports: list[Row] = []
        for part in filter(None, (self.numbers[:half], self.numbers[half:])):
            rows = pa.RecordBatch.from_pydict({"n": pa.array(part, pa.int64())})
            for report in function(iter([rows])):
                reports += [Row(**one) for one in report.to_pylist()]
        return Reports(reports)

    @property
    def write(self) -> "FakeBatch":
        """A batch that runs for the sake of its state alone."""
        return self

    def format(self, _: str) -> "FakeBatch":
        return self

    def mode(self, _: str) -> "FakeBatch":
        return self

    def save(self) -> None:
        pass


@dataclass(frozen=True)
class FakeQuery:
    """All sinks get all rows."""

    sinks: tuple[SinkBinding, ...]
    stateful: bool = True
    tagged: bool = False

    @property
    def plan(self) -> QueryPlan:
        return QueryPlan("q", (), ())

    def part_schema(self, _: SinkBinding) -> StructType:
        return SCHEMA

    def part(self, batch: Any, _: SinkBinding) -> Any:
        return batch
