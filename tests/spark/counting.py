"""A stream and its counts, which tests of topologies share."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pandas as pd

from penstock.model.topology import Topology
from penstock.spark.run.together import Pace
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant

# Two batches: the first, and one that goes on with what it left.
ROWS = 3000
STREAM = Generator(constant(1000.0), keys=20, seed=5, rows=ROWS, lanes=2, max_rows=ROWS // 2)
ONCE = Pace(once=True)
COUNTS = "SELECT key, window, count(*) AS n FROM {timed} GROUP BY key, window(at, '1 second')"


def stream_topology() -> Topology:
    """A topology with the stream and nothing else."""
    made = Topology("made", max_latency="30s")
    made.source("rows", STREAM)
    return made


def counted(frame: Any) -> Any:
    """Rows of each key and second."""
    timed = frame.withWatermark("at", "1 second")
    return timed.sparkSession.sql(COUNTS, timed=timed)


def expected_counts(epoch_s: float, keep: Callable[[pd.DataFrame], pd.Series]) -> Counter[Any]:
    """Counts of windows that the final watermark closes, from a batch over all rows."""
    rows = STREAM.batch(0, ROWS, epoch_s).to_pandas()
    closed_s = rows["at"].max() - pd.Timedelta(seconds=1)
    rows = rows[keep(rows)]
    start = rows["at"].dt.floor("1s")
    return Counter(
        (int(key), at.timestamp())
        for key, at in zip(rows["key"], start, strict=True)
        if at + pd.Timedelta(seconds=1) <= closed_s.floor("1ms")
    )


def found_counts(rows: list[Any]) -> dict[Any, int]:
    """Counts as they came, each window once."""
    found = {(row.key, row.window.start.timestamp()): row.n for row in rows}
    assert len(found) == len(rows), "a window came twice"
    return found
