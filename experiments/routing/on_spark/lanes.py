"""What a row costs a lane on Spark, by method of routing; for claims and benchmarks.

The rows are in an Arrow file that lanes map into memory, so that reading costs next to nothing and
routing weighs as much as it can: a lane reads, routes, hands the rows to the JVM, and those are
written to the exchange that obeys the routes. The time is that of the lanes' tasks.
"""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from penstock.model.observation import Floats
from penstock.model.route import Route
from penstock.spark import handles
from penstock.spark.routes.exchange import RouteExchange
from penstock.spark.routes.method import COLUMN
from penstock.spark.routes.reading import RoutedReading
from penstock.spark.routes.table_versions import RouteTableVersions

FORMAT = "penstock-lane-trial"
ROWS_PER_ARROW_BATCH = 65_536
LANES = 2
_SOURCE = "trial"


@dataclass(frozen=True)
class Lane(InputPartition):
    """One lane: the whole file, `times` times."""

    lane: int


class LaneTrialSource(DataSource):
    """Options: `file`, `times`, `version`, and those of a routed source."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def schema(self) -> str:
        """The columns of the file, and the routes."""
        return RoutedReading.of(self.options, _SOURCE).schema(self.options["columns"])

    def reader(self, schema: StructType) -> "LaneTrialReader":
        """The reader, made from options alone."""
        routed = RoutedReading.of(self.options, _SOURCE)
        options = self.options
        return LaneTrialReader(options["file"], int(options["times"]), options["version"], routed)


class LaneTrialReader(DataSourceReader):
    """Reads as lanes do."""

    def __init__(self, file: str, times: int, version: str, routed: RoutedReading) -> None:
        self._file, self._times, self._version, self._routed = file, times, version, routed

    def partitions(self) -> Sequence[InputPartition]:
        """The lanes."""
        return [Lane(lane) for lane in range(LANES)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a lane, with routes."""
        assert isinstance(partition, Lane)
        yield from self._routed.routed(self._mapped(), self._version, partition.lane)

    def _mapped(self) -> Iterator[pa.RecordBatch]:
        with pa.memory_map(self._file) as mapped:
            table = pa.ipc.open_file(mapped).read_all()
            for _ in range(self._times):
                yield from table.to_batches(max_chunksize=ROWS_PER_ARROW_BATCH)


@dataclass(frozen=True)
class LaneCost:
    """What rows cost lanes, over several turns, and how even the routes were."""

    ns_per_row: Floats
    load_ratio: float

    @property
    def least_ns(self) -> float:
        """What else runs on the machine only adds."""
        return float(self.ns_per_row.min())


def lane_costs(
    session: SparkSession,
    routes: Sequence[Route],
    before: "pa.Table",
    measured: "pa.Table",
    columns: str,
    turns: int,
    times: int,
) -> list[LaneCost]:
    """Every route in turn; `before` is what the lanes learn from, `columns` the schema as DDL."""
    session.dataSource.register(LaneTrialSource)
    with tempfile.TemporaryDirectory(prefix="penstock-lanes-") as folder:
        place = Path(folder)
        _write(before, place / "before.arrow")
        _write(measured, place / "measured.arrow")
        trials = [
            _Trial(session, route, place / str(number), columns)
            for number, route in enumerate(routes)
        ]
        for trial in trials:
            trial.learn(place / "before.arrow")
        taken: list[list[float]] = [[] for _ in trials]
        for turn in range(turns + 1):
            for number, trial in enumerate(trials):
                ns = trial.run(place / "measured.arrow", times)
                if turn > 0:  # the first one fills caches
                    taken[number].append(ns)
        return [
            LaneCost(np.array(one), trial.load_ratio(place / "measured.arrow"))
            for one, trial in zip(taken, trials, strict=True)
        ]


class _Trial:
    def __init__(self, session: SparkSession, route: Route, folder: Path, columns: str) -> None:
        self._session, self._route = session, route
        self._exchange = RouteExchange(folder)
        self._now_s = 0.0
        self._table_versions = RouteTableVersions(route, self._exchange, clock=lambda: self._now_s)
        self._version = self._table_versions.version(None)
        self._options = {
            "route": route.to_json(), "routes_at": str(folder), "columns": columns,
        }  # fmt: skip

    def learn(self, file: Path) -> None:
        """One batch, and the table that follows from it."""
        self.run(file, 1)
        self._now_s += self._route.period_s
        self._version = self._table_versions.version(self._version)

    def run(self, file: Path, times: int) -> float:
        """Nanoseconds of lane tasks for each row."""
        group = f"penstock-lanes-{id(self)}-{np.random.default_rng().integers(2**62)}"
        self._session.sparkContext.setJobGroup(group, "a trial of lanes")
        frame = self._lanes(file, times)
        frame = frame.repartitionById(self._route.partitions, F.col(COLUMN + _SOURCE))
        frame.drop(COLUMN + _SOURCE).write.format("noop").mode("overwrite").save()
        for job in handles.jobs_of_group(self._session, group):
            for stage in handles.stages(self._session, job.stage_ids):
                if stage.shuffle_records_written > 0:
                    return stage.run_time_ms * 1e6 / stage.shuffle_records_written
        raise AssertionError("no stage wrote to an exchange")

    def load_ratio(self, file: Path) -> float:
        """Standard deviation over mean of the rows of each task."""
        counts = self._lanes(file, 1).groupBy(COLUMN + _SOURCE).count().collect()
        rows = np.zeros(self._route.partitions)
        for row in counts:
            rows[row[0]] = row[1]
        return float(rows.std() / rows.mean())

    def _lanes(self, file: Path, times: int) -> DataFrame:
        options = {"file": str(file), "times": str(times), "version": self._version}
        return self._session.read.format(FORMAT).options(**options, **self._options).load()


def _write(table: "pa.Table", file: Path) -> None:
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
