"""The first executor on a standalone master, which lets a run wait for ever for what cannot fit.

What the master says of its workers decides at once; where it says nothing, a time limit does.
"""

import logging
import time
from collections.abc import Sequence
from contextlib import suppress

from pyspark.sql import SparkSession

from penstock.config import Settings
from penstock.errors import Infeasible, Unavailable
from penstock.spark import handles
from penstock.spark.handles import WorkerInfo

log = logging.getLogger(__name__)

LIMIT_S = 60.0
TOLD_AFTER_S = 10.0
POLL_S = 0.2


def await_executor(
    session: SparkSession, master: str, settings: Settings, limit_s: float = LIMIT_S
) -> None:
    """Until the first executor is there; Infeasible if it cannot come, or does not."""
    began_s, told = time.monotonic(), False
    with suppress(Unavailable):  # nobody can tell; the run will show it
        while not any(executor.active for executor in handles.executors(session)):
            waited_s = time.monotonic() - began_s
            workers = _workers(session, master)
            refuse_what_cannot_fit(workers, master, settings)
            if waited_s >= limit_s:
                raise Infeasible(
                    f"no executor of {settings.slots} slots and {settings.executor_memory_mb} MB "
                    f"came within {limit_s:g} s: {_why_none(workers, master)}."
                )
            if waited_s >= TOLD_AFTER_S and not told:
                log.warning(
                    "waiting for the first executor, for %g s at most: %s",
                    limit_s, _why_none(workers, master),
                )  # fmt: skip
                told = True
            time.sleep(POLL_S)


def refuse_what_cannot_fit(
    workers: Sequence[WorkerInfo] | None, master: str, settings: Settings
) -> None:
    """Refuse executors that do not fit on the workers even when all of them are free."""
    if not workers:
        return
    slots, memory_mb, fewest = settings.slots, settings.executor_memory_mb, settings.executors_min
    room = sum(min(one.slots // slots, one.memory_mb // memory_mb) for one in workers)
    if room >= fewest:
        return
    largest = max(workers, key=lambda one: (one.slots, one.memory_mb))
    raise Infeasible(
        f"{fewest} executors of {slots} slots and {memory_mb} MB cannot fit on {master}, which has "
        f"room for {room}: the largest of its {len(workers)} workers has {largest.slots} slots and "
        f"{largest.memory_mb} MB; give fewer --slots, a smaller --executor-memory-mb or fewer "
        "--executors-min."
    )


def _workers(session: SparkSession, master: str) -> tuple[WorkerInfo, ...] | None:
    """Those of the first master of a URL that answers; None where none does."""
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        with suppress(Unavailable):
            found = handles.standalone_workers(session, host, int(port))
            if found:  # a master that stands by knows none
                return found
    return None


def _why_none(workers: Sequence[WorkerInfo] | None, master: str) -> str:
    if not workers:
        return f"no worker of {master} is known; start one, or start what there is again"
    free, slots = sum(one.free_slots for one in workers), sum(one.slots for one in workers)
    return (
        f"{free} of {slots} slots of {master} are free; end what else runs there, or give fewer "
        "--slots or a smaller --executor-memory-mb"
    )
