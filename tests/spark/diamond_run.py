"""The diamond of Guo and Zhou 2017, fig. 1, as a program to kill: DIRECTORY PLAN BATCHES.

Reports of vehicles are counted and averaged in two branches, which a join brings together again.
PLAN and BATCHES are those of fused_run.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from penstock.model.sinks import Files, Memory
from penstock.model.topology import Topology
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant
from spark import fused_run

ROWS = 8_000
STREAM = Generator(constant(2_000.0), keys=60, seed=3, rows=ROWS, lanes=2, max_rows=1_000)
MEMBERS = ("average", "volume", "toll")
KEY = ("segment", "direction")


def diamond(sink: Files | Memory, stream: Generator = STREAM) -> Topology:
    """The toll of each vehicle, from its mean speed and the number of reports in its segment."""
    made = Topology("diamond", max_latency="30s")
    made.source("rows", stream)
    made.add(
        "reports",
        "SELECT key AS vehicle, key % 2 AS direction, key % 5 AS segment, value AS speed, at "
        "FROM rows",
        "rows",
    )
    made.add("average", lambda rows: _windowed(rows, "vehicle, ", "avg(speed) AS speed"), "reports")
    made.add("volume", lambda rows: _windowed(rows, "", "count(*) AS reports"), "reports")
    made.add(
        "toll",
        """SELECT a.vehicle, a.direction, a.segment, a.at, a.speed, v.reports
           FROM average a JOIN volume v
           ON a.direction = v.direction AND a.segment = v.segment AND a.at BETWEEN v.at AND v.at""",
        ["average", "volume"],
    )
    made.sink("tolls", "toll", sink)
    return made


def _windowed(rows, also, figure):  # type: ignore[no-untyped-def]
    timed = rows.withWatermark("at", "1 second")
    text = f"""SELECT * EXCEPT (window), window_time(window) AS at FROM (
                   SELECT {also}direction, segment, window, {figure} FROM {{timed}}
                   GROUP BY {also}direction, segment, window(at, '1 second'))"""
    return timed.sparkSession.sql(text, timed=timed)


def tolls(rows: Iterable[Mapping[str, Any]]) -> Counter[Any]:
    """Results in a form that can be compared."""
    return Counter(
        (r["vehicle"], r["direction"], r["segment"], r["at"].timestamp(), round(r["speed"], 9),
         r["reports"])
        for r in rows
    )  # fmt: skip


def expected(epoch_s: float, stream: Generator = STREAM) -> Counter[Any]:
    """The same from one look at all rows of a stream that began then.

    A result leaves the join in the batch after that of its branches, so it takes a window that was
    closed before the last batch: those of a stream that ends with a pause are.
    """
    rows = stream.batch(0, stream.rows or 0, epoch_s).to_pandas()
    rows = rows.assign(
        vehicle=rows["key"], direction=rows["key"] % 2, segment=rows["key"] % 5,
        start=rows["at"].dt.floor("1s"),
    )  # fmt: skip
    closed = (rows["at"].max() - np.timedelta64(1, "s")).floor("1ms")
    rows = rows[rows["start"] + np.timedelta64(1, "s") <= closed]
    volume = rows.groupby(["direction", "segment", "start"]).size()
    average = rows.groupby(["vehicle", "direction", "segment", "start"])["value"].mean()
    return tolls(
        {"vehicle": v, "direction": d, "segment": s, "speed": float(speed),
         "at": start + np.timedelta64(999_999, "us"), "reports": int(volume[d, s, start])}
        for (v, d, s, start), speed in average.items()
    )  # fmt: skip


if __name__ == "__main__":
    directory = Path(sys.argv[1])
    fused_run.run(
        diamond(Files(str(directory / "tolls"))), directory, sys.argv[2], int(sys.argv[3])
    )
