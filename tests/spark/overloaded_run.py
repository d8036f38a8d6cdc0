"""An overloaded topology with a last resort, as a program that a test can kill: DIRECTORY MASTER.

Prints a line after each batch, and what the last resort came to. With `once` it works off the rest.
"""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock.config import Settings
from penstock.control.step import Step
from penstock.model.sinks import Files
from penstock.model.topology import Topology
from penstock.spark.run.elastic import ElasticRun
from penstock.spark.run.place import Place
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant

ROWS = 7_200
STREAM = Generator(constant(300.0), keys=20, seed=5, rows=ROWS, lanes=2, max_rows=1_000)
WATERMARK_S = 1


def scored(seconds: float, form: str) -> Any:
    """A step that takes a while for each row and says in which form it ran."""

    def wait(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            time.sleep(seconds * batch.num_rows)
            yield batch

    def step(rows: Any) -> Any:
        named = rows.selectExpr("*", f"'{form}' AS form")
        return named.mapInArrow(wait, named.schema)

    return step


def topology(directory: Path) -> Topology:
    """Rows as they are scored, and counts of them in windows of a second."""
    made = Topology("resorted", max_latency="1s")
    made.source("rows", STREAM)
    made.add("scored", scored(0.001, "full"), "rows", cheaper=scored(0.0005, "cheaper"))
    made.add("timed", lambda scored: scored.withWatermark("at", f"{WATERMARK_S} seconds"), "scored")
    made.add(
        "counts",
        """SELECT key, window.start AS since, count(*) AS n, sum(value) AS total
           FROM timed GROUP BY key, window(at, '1 second')""",
        "timed",
    )
    made.sink("raw", "scored", Files(str(directory / "raw")))
    made.sink("windows", "counts", Files(str(directory / "windows")))
    return made


def report(step: Step) -> None:
    """What the last resort decided and whether it was done."""
    for outcome in step.room_outcomes:
        print("did", outcome.action, outcome.done, flush=True)
    for decision in step.observation.decided if step.observation is not None else ():
        print("decided", decision.what, flush=True)


def main(directory: Path, master: str, once: bool) -> None:
    """Run until killed, or until all rows are worked off."""
    settings = Settings(
        period_s=0.5, policy="static", key_groups=2, history=str(directory / "history.sqlite"),
        shed_at_most=0.3, resort_after_s=0.5, resort_undo_after_s=60.0,
    )  # fmt: skip
    place = Place(master, directory / "checkpoint", directory / "spark.log", once=once)
    with ElasticRun(topology(directory), settings, place, on_step=report) as run:
        run.running.after_batch.append(lambda _, batch: print("batch", batch, flush=True))
        if not run.wait(150):
            raise SystemExit("the stream was not worked off in time")
    print("finished", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:] == ["once"])
