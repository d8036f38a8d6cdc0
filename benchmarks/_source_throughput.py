"""Rows a second of the `penstock` source beside Spark's file source, by shape of row."""

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks._bare_source import FORMAT, BareSource
from penstock.model.sources import Admission, Streams
from penstock.spark.sources.frames import announce_sources, read_streams

FILES, ROWS_PER_RECORD_BATCH = 8, 100_000
# A stream runs for days: what it reads once everything is compiled counts, on either side.
WARM_UPS, ROUNDS = 10, 9


@dataclass(frozen=True)
class Shape:
    """Columns as DDL, rows of each file, and a column's values by its type."""

    columns: str
    rows_per_file: int

    def table(self, rng: np.random.Generator) -> pa.Table:
        """Rows of one file."""
        made = {}
        for number, column in enumerate(self.columns.split(", ")):
            name, kind = column.split()
            made[name] = _values(kind, number, self.rows_per_file, rng)
        return pa.table(made)


SHAPES = {
    "3 numbers": Shape("seq BIGINT, key BIGINT, value DOUBLE", 2_000_000),
    "20 numbers": Shape(
        ", ".join(f"c{n} {'DOUBLE' if n % 2 else 'BIGINT'}" for n in range(20)), 300_000
    ),
    "2 numbers and 2 texts": Shape("seq BIGINT, name STRING, value DOUBLE, note STRING", 700_000),
}


def throughput(session: Any) -> Iterator[dict[str, Any]]:
    """Two rows for each shape: ours, and the least any Python source takes."""
    session.dataSource.register(BareSource)
    for name, shape in SHAPES.items():
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
            yield from _of_shape(session, name, shape, Path(folder))


def _of_shape(session: Any, name: str, shape: Shape, folder: Path) -> Iterator[dict[str, Any]]:
    one = _write(shape, folder)
    rows = FILES * shape.rows_per_file
    # As many lanes as Spark makes tasks of these files.
    native_files = session.read.schema(shape.columns).parquet(str(folder / "parquet"))
    tasks = native_files.rdd.getNumPartitions()
    admission = Admission(lane_capacity=rows / tasks / 5, lane_rows=rows, lanes_max=tasks)
    streams = Streams(
        files=str(folder / "arrow"), format="arrow", schema=shape.columns, admission=admission
    )

    def ours() -> float:
        announce_sources(session, Path(tempfile.mkdtemp(dir=folder)))
        progress, spent_s = _worked_off(read_streams("files", streams, session, time.time(), None))
        # Spark counts packs of rows here.
        read = sum(json.loads(p.sources[0].endOffset)["rows"] for p in progress)
        assert read == rows
        return rows / spent_s

    def bare() -> float:
        reader = session.readStream.format(FORMAT).option("columns", shape.columns)
        times = rows // ROWS_PER_RECORD_BATCH // tasks
        reader = reader.options(file=str(one), tasks=str(tasks), times=str(times))
        progress, spent_s = _worked_off(reader.load())
        return float(sum(p.numInputRows for p in progress) / spent_s)

    def native() -> float:
        reader = session.readStream.schema(shape.columns)
        progress, spent_s = _worked_off(reader.parquet(str(folder / "parquet")))
        assert sum(p.numInputRows for p in progress) == rows
        return rows / spent_s

    found = _rates([native, ours, bare])
    conditions = (
        f"baseline: Spark's file source on the same rows as Parquet (pyarrow's defaults); ours: "
        f"{{}}; {FILES} files of {shape.rows_per_file:,} rows in one batch of {tasks} tasks, all "
        f"columns to a noop sink, local[2], median of {ROUNDS} rounds after {WARM_UPS} to warm up, "
        f"sources in turn, from a batch's plan to its end{{}}"
    )
    formats = (("source throughput", "Arrow IPC streams", "; 0.9 is asked for"),
            ("least of a Python source", "one Arrow batch again and again", ""))  # fmt: skip
    for (what, how, more), rate in zip(formats, found[1:], strict=True):
        yield {
            "name": f"{what}, {name}",
            "baseline": round(found[0]),
            "ours": round(rate),
            "unit": "rows/s",
            "ratio": round(rate / found[0], 3),
            "conditions": conditions.format(how, more),
        }


def _rates(sources: list[Callable[[], float]]) -> list[float]:
    """Rows a second of each, in turn so that what disturbs one disturbs all."""
    rates: list[list[float]] = [[] for _ in sources]
    for _ in range(WARM_UPS + ROUNDS):
        for place, rate in enumerate(sources):
            rates[place].append(rate())
    return [median(found[WARM_UPS:]) for found in rates]


def _worked_off(frame: Any) -> tuple[list[Any], float]:
    """The batches of a query that reads all there is, and the seconds they took."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        writer = frame.writeStream.format("noop").option("checkpointLocation", folder)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        progress = [p for p in query.recentProgress if p.numInputRows]
    # Every query starts a process for a Python source, which its first look at the streams waits
    # for; what looks and decisions cost in each batch is told by the overhead.
    return progress, sum(p.durationMs["addBatch"] for p in progress) / 1e3


def _write(shape: Shape, folder: Path) -> Path:
    """The same rows twice, and one record batch by itself."""
    arrow, parquet, one = folder / "arrow", folder / "parquet", folder / "one.arrow"
    arrow.mkdir()
    parquet.mkdir()
    rng = np.random.default_rng(0)
    for number in range(FILES):
        table = shape.table(rng)
        pq.write_table(table, parquet / f"{number}.parquet")
        with pa.ipc.new_stream(str(arrow / f"{number}.arrow"), table.schema) as writer:
            writer.write_table(table, max_chunksize=ROWS_PER_RECORD_BATCH)
    with pa.ipc.new_stream(str(one), table.schema) as writer:
        writer.write_table(table.slice(0, ROWS_PER_RECORD_BATCH))
    return one


def _values(kind: str, number: int, rows: int, rng: np.random.Generator) -> Any:
    if kind == "DOUBLE":
        return rng.random(rows)
    if kind == "STRING":
        names = pa.array([f"sensor-{place:06d}" for place in range(50_000)])
        return names.take(pa.array(rng.integers(0, len(names), rows)))
    return np.arange(rows) if number == 0 else rng.integers(0, 10_000, rows)
