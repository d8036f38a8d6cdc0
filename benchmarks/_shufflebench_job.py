"""ShuffleBench's job: records go to all consumers whose rule they match, and each keeps a state.

After Henning et al. 2024: random records of 1 KiB, 1,000 rules that match a fifth of all records
together, and a consumer that reports at every tenth record of its own. One side of the comparison
in a process of its own: MODE RECORDS OUT; prints JSON.
"""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from benchmarks.nexmark.worker import KEY_GROUPS, cpu_s, plain_session
from penstock import Files, Topology

RULES, SELECTIVITY, OUTPUT_EVERY, RECORD_BYTES = 1_000, 0.2, 10, 1_024
SPACE = 2**63  # of the numbers that rules are ranges of
WIDTH = int(SPACE * SELECTIVITY / RULES)
SCHEMA = "id BIGINT, at TIMESTAMP, data BINARY"
MATCHED = "consumer INT, id BIGINT, at TIMESTAMP, data BINARY"
EVENTS = "consumer INT, checksum BIGINT, first TIMESTAMP, last TIMESTAMP"
STATE = "count BIGINT, checksum BIGINT, first TIMESTAMP, last TIMESTAMP"
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


def write(folder: Path, records: int, files: int) -> None:
    """Records of random bytes, a millisecond after each other."""
    folder.mkdir()
    random, per_file = np.random.default_rng(1), records // files
    for number in range(files):
        ids = np.arange(number * per_file, (number + 1) * per_file)
        data = random.bytes(per_file * RECORD_BYTES)
        offsets = np.arange(per_file + 1, dtype=np.int32) * RECORD_BYTES
        column = pa.BinaryArray.from_buffers(
            pa.binary(), per_file, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        )
        at = pa.array(1_700_000_000_000_000 + ids * 1_000, pa.timestamp("us", "UTC"))
        table = pa.table({"id": ids, "at": at, "data": column})
        pq.write_table(table, folder / f"{number:03}.parquet", compression="none")


def match(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Each record once for every rule whose range it falls into."""
    begins = np.sort(np.random.default_rng(7).integers(0, SPACE, RULES, dtype=np.int64))
    for batch in batches:
        numbers = _first_numbers(batch.column("data"))
        # Ranges that begin within WIDTH below a number hold it; they go round at the end.
        last = np.searchsorted(begins, numbers, "right")
        first = np.searchsorted(begins, numbers - WIDTH, "right")
        before = np.searchsorted(begins, SPACE - 1 - (WIDTH - 1 - numbers).clip(0), "right")
        round_the_end = np.where(numbers < WIDTH - 1, RULES - before, 0)
        counts = last - first + round_the_end
        rows = np.repeat(np.arange(len(numbers)), counts)
        place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        consumer = (last[rows] - 1 - place) % RULES
        taken = batch.take(pa.array(rows))
        yield pa.RecordBatch.from_arrays(
            [pa.array(consumer, pa.int32()), *taken.columns], ["consumer", "id", "at", "data"]
        )


def _first_numbers(column: Any) -> Any:
    """The first eight bytes of each record, as a number below SPACE."""
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset :][: len(column)]
    raw = np.frombuffer(column.buffers()[2], np.uint8)
    numbers = raw[offsets[:, None] + np.arange(8)].copy().view(np.int64).ravel()
    return numbers & np.int64(SPACE - 1)


def consume(key: tuple[int], frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
    """Count and sum up; tell both at every tenth record, and begin anew."""
    rows = pd.concat(list(frames)).sort_values("id")
    numbers = np.array([int.from_bytes(one[:4], "little") for one in rows["data"]])
    count, checksum, first, last = state.get if state.exists else (0, 0, None, None)
    events = []
    for number, at in zip(numbers.tolist(), rows["at"], strict=True):
        count, checksum, first, last = count + 1, checksum + number, first or at, at
        if count == OUTPUT_EVERY:
            events.append((key[0], checksum, first, last))
            count, checksum, first = 0, 0, None
    state.update((count, checksum, first, last))
    yield pd.DataFrame(events, columns=["consumer", "checksum", "first", "last"])


def matched(records: DataFrame) -> DataFrame:
    """The stateless part."""
    return records.mapInArrow(match, MATCHED)


def consumed(rows: DataFrame) -> DataFrame:
    """The consumers, each with its state."""
    by = rows.groupBy("consumer")
    return by.applyInPandasWithState(consume, EVENTS, STATE, "append", "NoTimeout")


def read(spark: SparkSession, folder: Path) -> DataFrame:
    """One file in each batch."""
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))


def topology(records: Path, out: Path) -> Topology:
    """The job as a topology."""
    made = Topology("shufflebench", max_latency="60s")
    made.source("records", lambda spark: read(spark, records))
    made.add("matched", matched, "records")
    made.add("consumed", consumed, "matched")
    made.sink("events", "consumed", Files(str(out / "events")))
    return made


def main(mode: str, records: Path, out: Path) -> dict[str, float]:
    """Run the job until all files are read; what that took."""
    began_s = time.monotonic()
    if mode == "penstock":
        made = topology(records, out)
        made.run(once=True, checkpoint=out / "checkpoint", key_groups=KEY_GROUPS, master="local[2]")
    else:
        spark = plain_session(mode)
        events = consumed(matched(read(spark, records)))
        writing = events.writeStream.format("parquet").option("path", str(out / "events"))
        writing = writing.option("checkpointLocation", str(out / "checkpoint"))
        writing.trigger(availableNow=True).start().awaitTermination()
        spark.stop()
    return {"seconds": time.monotonic() - began_s, "cpu_s": cpu_s()}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))))
