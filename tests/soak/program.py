"""What is disturbed: DIRECTORY FORM SEED LENGTH_S MEAN_PER_S MASTER [once].

Every decision is at work. Prints a line after each batch, and when executors are drained or key
groups moved. SIGUSR1 kills the loop's thread. With `once` it works off what is left and ends.
"""

import ctypes
import logging
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from penstock.control.controller import THREAD
from penstock.errors import PenstockError
from penstock.spark.act.executors import SparkExecutors
from penstock.spark.act.placement import Placement
from penstock.spark.run.elastic import ElasticRun
from soak import forms

LENGTH_LIMIT_S = 7200.0


def kill_loop(*_: object) -> None:
    """End the loop's thread as if it had met something nobody foresaw."""
    for thread in threading.enumerate():
        if thread.name == THREAD and thread.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
            )


def tell_when(owner: type, method: str, word: str) -> None:
    """Print a word whenever a method is called: the moment for whoever waits for it."""
    told = getattr(owner, method)

    def telling(*arguments: Any, **named: Any) -> Any:
        print(word, flush=True)
        return told(*arguments, **named)

    setattr(owner, method, telling)


def main(
    directory: Path, form: str, seed: int, length_s: float, mean_per_s: float, master: str,
    once: bool,
) -> None:  # fmt: skip
    """Run until killed, or until all rows are worked off."""
    began_s = time.monotonic()
    logging.basicConfig(level=logging.WARNING)
    signal.signal(signal.SIGUSR1, kill_loop)
    tell_when(SparkExecutors, "_drain_to", "scale-in")
    tell_when(Placement, "move", "move")
    topology = forms.topology(form, directory, seed, length_s, mean_per_s, once)
    place = forms.place(form, master, directory, once)
    with ElasticRun(topology, forms.settings(form, directory), place) as run:
        print(f"started after {time.monotonic() - began_s:.1f} s", flush=True)
        run.running.after_batch.append(lambda _, batch: print("batch", batch, flush=True))
        if not run.wait(LENGTH_LIMIT_S):
            raise SystemExit("the streams were not worked off in time")
    print("finished", flush=True)


if __name__ == "__main__":
    try:
        main(
            Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4]),
            float(sys.argv[5]), sys.argv[6], sys.argv[7:] == ["once"],
        )  # fmt: skip
    except PenstockError as refusal:  # as the command line does
        print(f"error: {refusal}", file=sys.stderr, flush=True)
        sys.exit(refusal.exit_code)
