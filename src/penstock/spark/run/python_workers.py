"""Python on executors, started before the first batch needs it.

The process that workers are forked from imports pandas and Arrow, and on a cluster an executor has
to start first: that takes as long as to analyse a topology, and both can go on at once.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

LIMIT_S = 60.0


def start_python_workers(session: SparkSession) -> None:
    """Let Spark start the process that tasks' Python workers are forked from.

    The function is sent as it is: one that is known by its module would be imported over there,
    with all that this module needs.
    """
    session.range(1).mapInArrow(lambda batches: batches, "id BIGINT").collect()


@contextmanager
def python_workers_beside(session: SparkSession) -> Iterator[None]:
    """The same while a block runs, where executors are processes of their own."""
    if str(session.sparkContext.master).startswith("local"):
        yield
        return
    beside = threading.Thread(
        target=_start_safely, args=(session,), name="penstock-python-workers", daemon=True
    )
    beside.start()
    yield
    beside.join(LIMIT_S)


def _start_safely(session: SparkSession) -> None:
    try:
        start_python_workers(session)
    except Exception as error:  # noqa: BLE001 - the first batch will show it
        log.debug("Python workers were not started ahead: %s", error)
