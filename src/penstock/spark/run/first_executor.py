"""The first executor on a cluster, which lets a run wait for ever for what cannot fit.

What a standalone master's page says of its workers decides before Spark starts; where there is
none, and on YARN and Kubernetes, a time limit does.
"""

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from pyspark.sql import SparkSession

from penstock.config import Settings
from penstock.errors import Infeasible, Unavailable, documented
from penstock.spark import handles
from penstock.spark.cluster.master_page import Worker, workers_of

log = logging.getLogger(__name__)

LIMIT_S = 60.0
# An image may have to be fetched, and a machine to be started.
SLOW_LIMIT_S = 300.0
TOLD_AFTER_S = 10.0
POLL_S = 0.2


@documented("clusters")
def refuse_what_cannot_fit(
    workers: Sequence[Worker] | None, master: str, settings: Settings
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


@contextmanager
def told_while_waiting(master: str, after_s: float = TOLD_AFTER_S) -> Iterator[None]:
    """Say why nothing happens: YARN lets an application wait for ever if its queue is full."""
    if master != "yarn":
        yield
        return
    said = "waiting for YARN to take the application, for as long as it takes: %s"
    timer = threading.Timer(after_s, log.warning, (said, _why_none(master)))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def await_executor(
    session: SparkSession, master: str, settings: Settings, limit_s: float | None = None
) -> None:
    """Until the first executor is there; Infeasible if none comes."""
    if limit_s is None:
        limit_s = LIMIT_S if master.startswith("spark://") else SLOW_LIMIT_S
    began_s, told = time.monotonic(), False
    with suppress(Unavailable):  # nobody can tell; the run will show it
        while not any(executor.active for executor in handles.executors(session)):
            waited_s = time.monotonic() - began_s
            if waited_s >= limit_s:
                raise Infeasible(
                    f"no executor of {settings.slots} slots and {settings.executor_memory_mb} MB "
                    f"came within {limit_s:g} s: {_why_none(master, session)}; end what else runs "
                    "there, or give fewer --slots or a smaller --executor-memory-mb."
                )
            if waited_s >= TOLD_AFTER_S and not told:
                told = True
                log.warning(
                    "waiting for the first executor, for %g s at most: %s",
                    limit_s, _why_none(master, session),
                )  # fmt: skip
            time.sleep(POLL_S)


def _why_none(master: str, session: SparkSession | None = None) -> str:
    if master == "yarn":
        return "its queue or its nodes have not as much free, as the ResourceManager's page shows"
    if master.startswith("k8s://"):
        return _why_no_pod(session)
    workers = workers_of(master)
    if workers is None:
        return f"no worker of {master} has as much free"
    free, slots = sum(one.free_slots for one in workers), sum(one.slots for one in workers)
    return f"{free} of {slots} slots of {master} are free"


def _why_no_pod(session: SparkSession | None) -> str:
    with suppress(Unavailable):
        trouble = handles.pod_trouble(session) if session is not None else handles.PodTrouble()
        if trouble.refused:
            return "its API server refuses pods (a quota, a role); the log says what it answered"
        if trouble.waiting:
            return f"its scheduler says {trouble.waiting[0]!r}"
    return "no pod of that size could start; `kubectl get events` says why"
