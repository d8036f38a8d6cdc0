"""All of Nexmark's queries as a program that a test can kill: DIRECTORY MASTER.

Executors go from one to two and back, again and again. Prints a line after each batch and each
change. With `once` it works off the files that are there and ends.
"""

import sys
import threading
from pathlib import Path
from typing import Any

from benchmarks.nexmark.programs import topology
from benchmarks.nexmark.queries import BY_NAME
from penstock.config import Settings
from penstock.control.actions import SetExecutors
from penstock.control.ports import Actuator
from penstock.spark.run.elastic import ElasticRun
from penstock.spark.run.place import Place

BATCHES_BETWEEN = 3  # changes of the number of executors
LIMIT_S = 1200


class Swinging(ElasticRun):
    """A run whose executors are told their number from outside, by the loop's own actuator."""

    actuator: Actuator

    def _controlled(self) -> Any:
        subject = super()._controlled()
        self.actuator = subject.actuator
        return subject

    def swing(self) -> None:
        """There and back, each time some batches later."""
        total, batches = 1, threading.Semaphore(0)
        self.running.after_batch.append(lambda *_: batches.release())
        while True:
            for _ in range(BATCHES_BETWEEN):
                batches.acquire()
            total = 3 - total
            print("executors", self.actuator.act(SetExecutors(total)).detail, flush=True)


def main(directory: Path, master: str, once: bool) -> None:
    """Run until killed, or until all files are worked off."""
    settings = Settings(
        period_s=2.0, policy="static", executors_min=1, executors_max=2, slots=1, key_groups=2,
        executor_memory_mb=768, history=str(directory / "history.sqlite"),
    )  # fmt: skip
    place = Place(master, directory / "checkpoint", directory / "spark.log", once=once)
    made = topology(BY_NAME, directory / "events", directory / "out")
    with Swinging(made, settings, place) as run:
        run.running.after_batch.append(lambda _, batch: print("batch", batch, flush=True))
        if not once:
            threading.Thread(target=run.swing, daemon=True).start()
        if not run.wait(LIMIT_S):
            raise SystemExit("the files were not worked off in time")
    print("finished", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], once=False)
