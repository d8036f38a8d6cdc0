"""Nexmark's queries as plain queries side by side and as one topology, over the same files."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from benchmarks.nexmark.events import SCHEMAS
from benchmarks.nexmark.queries import BY_NAME, Query
from penstock import Files, Topology


def read(spark: SparkSession, folder: Path, kind: str) -> DataFrame:
    """Events of a kind, one file in each batch."""
    reader = spark.readStream.schema(SCHEMAS[kind]).option("maxFilesPerTrigger", 1)
    (suffix,) = {file.suffix for file in (folder / kind).iterdir()}
    return reader.format(suffix[1:]).load(str(folder / kind))


def _overwriting(out: Path) -> Callable[[DataFrame, int], None]:
    """Writes each batch to a folder of its own, anew if it is repeated."""

    def write(frame: DataFrame, batch: int) -> None:
        frame.write.mode("overwrite").parquet(str(out / f"batch={batch}"))

    return write


def topology(names: Iterable[str], folder: Path, out: Path) -> Topology:
    """All of these queries as one topology."""
    made = Topology("nexmark", max_latency="60s")
    queries = [BY_NAME[name] for name in names]
    for kind in sorted({kind for query in queries for kind in query.reads}):
        made.source(kind, lambda spark, kind=kind: read(spark, folder, kind))
    for query in queries:
        made.add(query.name, query.stream, list(query.reads))
        sink = Files(str(out / query.name))
        made.sink(f"{query.name}_out", query.name, sink, mode=query.mode)
    return made


def start_plain(
    spark: SparkSession, names: Iterable[str], folder: Path, out: Path
) -> list[StreamingQuery]:
    """Each of these queries by itself, in one session, until all files are read."""
    started = []
    for query in map(BY_NAME.__getitem__, names):
        found = query.stream(*(read(spark, folder, kind) for kind in query.reads))
        writing = _written(found.writeStream.outputMode(query.mode), query, out / query.name)
        writing = writing.option("checkpointLocation", str(out / "checkpoints" / query.name))
        started.append(writing.trigger(availableNow=True).start())
    return started


def _written(stream: DataStreamWriter, query: Query, out: Path) -> DataStreamWriter:
    """To Parquet files, by Spark's own sink where it takes results of this kind."""
    if query.mode == "append":
        return stream.format("parquet").option("path", str(out))
    return stream.foreachBatch(_overwriting(out))


def results(query: Query, out: Path) -> list[tuple[Any, ...]]:
    """What a query gave: all rows, or the last of each key; times as whole microseconds."""
    folder = out / query.name
    # What begins otherwise is not published yet.
    files = [*folder.glob("[!._]*.parquet"), *folder.glob("batch=*/[!._]*.parquet")]
    if not files:
        return []
    named = sorted(map(str, files))
    found = ds.dataset(named, partitioning="hive", partition_base_dir=str(folder)).to_table()
    if query.key:
        found = found.sort_by("batch")
    names = [name for name in found.column_names if name != "batch"]
    rows = list(zip(*(_plain(found[name]) for name in names), strict=True))
    if not query.key:
        return rows
    places = [names.index(name) for name in query.key]
    return list({tuple(row[place] for place in places): row for row in rows}.values())


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """Spark's own sink and ours write times in different ways."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    found: list[Any] = column.to_pylist()
    return found
