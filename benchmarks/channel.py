"""A hop between two queries: a channel against Spark's own Parquet files.

Throughput: rows are there already, and each side works them off with availableNow; both have the
same source, the same number of tasks and the same rows in a batch. Latency: rows arrive at a
steady rate, and what the second query adds is the time from their arrival to its result, less the
same for the first.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks._sessions import local_session
from penstock.spark.channels.publishing import ChannelWriter
from penstock.spark.sources.generator_source import FORMAT as GENERATOR
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant

ROWS = 2_000_000
ROWS_A_BATCH = 500_000
LANES = 2
STEADY_ROWS_PER_S = 500.0
STEADY_S = 12.0
SCHEMA = "row BIGINT, key BIGINT, value DOUBLE, at TIMESTAMP"


def run() -> Iterator[dict[str, Any]]:
    """Both ways in one session, each twice, the faster counts."""
    with local_session() as spark, tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _hop(spark, root / "warm", _channel, ROWS_A_BATCH)
        files_s = min(_hop(spark, root / f"f{n}", _parquet, ROWS) for n in range(2))
        channel_s = min(_hop(spark, root / f"c{n}", _channel, ROWS) for n in range(2))
        yield {
            "name": "channel.throughput",
            "baseline": ROWS / files_s,
            "ours": ROWS / channel_s,
            "unit": "rows/s",
            "ratio": files_s / channel_s,
            "conditions": f"write and read {ROWS:,} rows of 4 columns in batches of "
            f"{ROWS_A_BATCH:,}, {LANES} tasks, local[2]; baseline: Parquet by Spark's file sink "
            "and source",
        }
        files_s = _added_s(spark, root / "fl", _parquet)
        channel_s = _added_s(spark, root / "cl", _channel)
        yield {
            "name": "channel.latency_added",
            "baseline": files_s,
            "ours": channel_s,
            "unit": "s",
            "ratio": files_s / channel_s,
            "conditions": f"{STEADY_ROWS_PER_S:g} rows/s for {STEADY_S:g} s, two queries back to "
            "back on 2 slots; median over batches of the second less the first",
        }


Ends = tuple[Callable[[Any], Any], Callable[[Any], Any]]


def _channel(root: Path) -> Ends:
    """A writer of a streaming frame, and its reader."""
    path = root / "channel"

    def write(frame: Any) -> Any:
        return frame.writeStream.foreachBatch(ChannelWriter(path))

    def read(spark: Any) -> Any:
        options = {"path": str(path), "reader": "bench", "partitions": str(LANES)}
        return spark.readStream.format("penstock-channel").options(**options).load()

    return write, read


def _parquet(root: Path) -> Ends:
    path = root / "files"
    path.mkdir(parents=True)

    def write(frame: Any) -> Any:
        return frame.writeStream.format("parquet").option("path", str(path))

    def read(spark: Any) -> Any:
        return spark.readStream.schema(SCHEMA).format("parquet").load(str(path))

    return write, read


def _hop(spark: Any, root: Path, kind: Callable[[Path], Ends], rows: int) -> float:
    """Seconds to write all rows and to read them again."""
    write, read = kind(root)
    stream = Generator(
        constant(1e9), keys=1_000, rows=rows, lanes=LANES, max_rows=ROWS_A_BATCH
    )  # fmt: skip
    began_s = time.perf_counter()
    _run_off(write(_generated(spark, stream, time.time() - 3600)), root / "w")
    counted: list[int] = []
    sink = read(spark).writeStream.foreachBatch(lambda batch, _: counted.append(batch.count()))
    _run_off(sink, root / "r")
    took_s = time.perf_counter() - began_s
    assert sum(counted) == rows, f"{sum(counted)} of {rows} rows"
    return took_s


def _run_off(stream: Any, checkpoint: Path) -> None:
    query = stream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()


def _added_s(spark: Any, root: Path, kind: Callable[[Path], Ends]) -> float:
    """Median latency at the second query less that at the first."""
    write, read = kind(root)
    stream = Generator(constant(STEADY_ROWS_PER_S), keys=1_000, lanes=LANES)
    seen: list[tuple[float, float]] = []

    def look(batch: Any, _: int) -> None:
        newest = batch.agg({"at": "avg"}).collect()[0][0]
        if newest is not None:
            seen.append((newest.timestamp(), time.time()))

    first = write(_generated(spark, stream, time.time()))
    first = first.option("checkpointLocation", str(root / "w")).start()
    try:
        while not list(root.glob("files/*.parquet")) and not list(root.glob("channel/log/*.json")):
            time.sleep(0.1)
        second = read(spark).writeStream.foreachBatch(look)
        second = second.option("checkpointLocation", str(root / "r")).start()
        time.sleep(STEADY_S)
        duration_s = median(
            p.durationMs["triggerExecution"] / 1e3 for p in first.recentProgress[2:]
        )
        second.stop()
    finally:
        first.stop()
    # A row waits half a batch of the first query and is then worked on for a whole one.
    return median(done - at for at, done in seen[len(seen) // 3 :]) - 1.5 * duration_s


def _generated(spark: Any, stream: Generator, epoch_s: float) -> Any:
    options = {"generator": stream.to_json(), "epoch_s": repr(epoch_s), "stream": "rows"}
    return spark.readStream.format(GENERATOR).options(**options).load()
