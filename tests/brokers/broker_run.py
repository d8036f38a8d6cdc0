"""Streams of a broker to files, as a program that a test can kill: DIRECTORY MASTER [once].

`streams.json` in the directory says where the streams are. Lanes are small and packed anew every
second, so that streams are redirected all the time. Prints a line after each batch.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

from penstock.config import Settings
from penstock.model.sinks import Files
from penstock.model.sources import Admission, Streams
from penstock.model.topology import Topology
from penstock.spark.run.elastic import ElasticRun
from penstock.spark.run.place import Place

ADMISSION = Admission(
    strategy="par", lane_capacity=60.0, lane_rows=40, lanes_max=3, period="1s", horizon=1
)
AT_LAST = replace(ADMISSION, lane_rows=1_000_000)  # for what queued up meanwhile


def topology(directory: Path, admission: Admission, told: Path | None = None) -> Topology:
    """Each row with its stream, as it came; `told` is where the streams are told of."""
    told = told or directory
    where = json.loads((told / "streams.json").read_text())
    made = Topology("brokers", max_latency="30s")
    streams = Streams(
        **where, schema="seq BIGINT", stream_column="stream", admission=admission,
        declared=str(told / "streams.toml"), discovery_period="0.2s",
    )  # fmt: skip
    made.source("rows", streams)
    made.add("same", "SELECT stream, seq FROM rows", "rows")
    made.sink("out", "same", Files(str(directory / "out")))
    return made


def main(directory: Path, master: str, once: bool) -> None:
    """Run until killed, or until all rows are worked off."""
    settings = Settings(
        period_s=2.0, policy="static", executors_min=2, executors_max=2, slots=1, key_groups=2,
        executor_memory_mb=512, history=str(directory / "history.sqlite"),
    )  # fmt: skip
    place = Place(master, directory / "checkpoint", directory / "spark.log", once=once)
    made = topology(directory, AT_LAST if once else ADMISSION)
    with ElasticRun(made, settings, place) as run:

        def report(_query: str, batch: int) -> None:
            (status,) = run.running.sources.statuses("rows")
            print("batch", batch, json.dumps(status["redirected"]), flush=True)

        run.running.after_batch.append(report)
        if not run.wait(200):
            raise SystemExit("the streams were not worked off in time")
    print("finished", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:] == ["once"])
