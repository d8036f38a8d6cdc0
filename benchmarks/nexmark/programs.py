"""Nexmark's queries as plain queries side by side and as one topology, over the same files."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from benchmarks.nexmark.events import SCHEMAS
from benchmarks.nexmark.queries import BY_NAME, DELAY_S, Query
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


def results(spark: SparkSession, query: Query, out: Path) -> list[tuple[Any, ...]]:
    """What a query gave: all rows, or the last of each key where results are updated."""
    # Batches without rows have no file, and a folder with none has no columns.
    files = sorted((out / query.name).rglob("*.parquet"))
    if not files:
        return []
    found = spark.read.option("basePath", str(out / query.name)).parquet(*map(str, files))
    if query.key:
        found = found.withColumnRenamed("batch", "_batch")
        last = F.expr("max_by(struct(*), _batch)").alias("last")
        found = found.groupBy(*query.key).agg(last).select("last.*").drop("_batch")
    else:
        found = found.drop("batch")
    return sorted(map(tuple, found.collect()), key=repr)


def expected(
    spark: SparkSession, query: Query, folder: Path, kinds: Iterable[str]
) -> list[tuple[Any, ...]]:
    """The same question as a batch over all events, without what the watermark left open.

    Spark has one watermark for a streaming query: the earliest of all `kinds` that it reads.
    """
    for kind, schema in SCHEMAS.items():
        spark.read.schema(schema).parquet(str(folder / kind)).createOrReplaceTempView(kind)
    ends = " UNION ALL ".join(f"SELECT max(at) AS last FROM {kind}" for kind in kinds)
    closed = f"(SELECT min(last) - INTERVAL {DELAY_S} SECONDS FROM ({ends}))"
    found = spark.sql(query.batch.replace("{closed}", closed))
    return sorted(map(tuple, found.collect()), key=repr)
