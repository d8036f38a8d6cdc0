"""How fast the generator source fills a query, beside Spark's own rate source."""

import tempfile
import time
from collections.abc import Iterator
from statistics import median
from typing import Any

from benchmarks._sessions import local_session
from penstock.spark.sources.generator_source import FORMAT
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant

ROWS = 12_000_000
ROUNDS = 5


def run() -> Iterator[dict[str, Any]]:
    """Rows per second into a sink that drops them, two slots, one batch each, warm."""
    with local_session() as session:

        def seconds(frame: Any) -> float:
            with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
                writer = frame.writeStream.format("noop").option("checkpointLocation", folder)
                query = writer.trigger(availableNow=True).start()
                query.awaitTermination()
                progress = [p for p in query.recentProgress if p.numInputRows]
                assert sum(p.numInputRows for p in progress) == ROWS
                return sum(p.durationMs["addBatch"] for p in progress) / 1e3

        def generated(skew: float) -> float:
            stream = Generator(constant(1e6), keys=10_000, skew=skew, rows=ROWS, lanes=4)
            reader = session.readStream.format(FORMAT).option("generator", stream.to_json())
            return seconds(reader.option("epoch_s", repr(time.time())).load())

        def native() -> float:
            reader = session.readStream.format("rate-micro-batch")
            reader = reader.option("rowsPerBatch", ROWS).option("numPartitions", 4)
            return seconds(reader.load())

        for skew in (0.0, 1.0):
            generated(skew), native()
            pairs = [(native(), generated(skew)) for _ in range(ROUNDS)]
            baseline, ours = (ROWS / median(side) for side in zip(*pairs, strict=True))
            yield {
                "name": f"generator source, skew {skew:g}",
                "baseline": round(baseline),
                "ours": round(ours),
                "unit": "rows/s",
                "ratio": round(ours / baseline, 3),
                "conditions": f"baseline: Spark's rate-micro-batch source, which makes two columns "
                f"in the JVM; ours: four columns by Python; {ROWS:,} rows, local[2], median of "
                f"{ROUNDS}; at least 2 M rows/s are asked for",
            }
