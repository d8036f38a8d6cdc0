"""Many growing files into lanes, as a program that a test can kill: DIRECTORY MASTER [once].

Prints a line after each batch. With `once` it works off what is left and ends.
"""

import logging
import sys
from pathlib import Path

from penstock.config import Settings
from penstock.model.sinks import Files
from penstock.model.sources import Admission, Streams
from penstock.model.topology import Topology
from penstock.spark.run.elastic import ElasticRun
from penstock.spark.run.place import Place

# PAR places every stream anew each period, so redirections are as many as can be.
ADMISSION = Admission(
    strategy="par", lane_capacity=80, lane_rows=400, lanes_max=3, period="0.7s", drain_below=None
)


def topology(directory: Path) -> Topology:
    """Rows as they come."""
    made = Topology("tailed", max_latency="10s")
    made.source(
        "files",
        Streams(
            files=str(directory / "in"), schema="seq BIGINT, text STRING", stream_column="stream",
            discovery_period="0.2s", admission=ADMISSION, dead_letters=str(directory / "dead"),
        ),
    )  # fmt: skip
    made.sink("out", "files", Files(str(directory / "out")))
    return made


def main(directory: Path, master: str, once: bool) -> None:
    """Run until killed, or over what is there."""
    logging.basicConfig(level=logging.WARNING)
    settings = Settings(
        period_s=2.0, policy="static", executors_min=2, executors_max=2, slots=1, key_groups=2,
        executor_memory_mb=512, history=str(directory / "history.sqlite"), batch_interval_s=0.2,
    )  # fmt: skip
    place = Place(master, directory / "checkpoint", directory / "spark.log", once=once)
    with ElasticRun(topology(directory), settings, place) as run:
        run.running.after_batch.append(lambda _, batch: print("batch", batch, flush=True))
        if not run.wait(200) and once:
            raise SystemExit("the streams were not worked off in time")
    print("finished", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:] == ["once"])
