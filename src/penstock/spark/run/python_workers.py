"""Python on executors, started before the first batch needs it.

The process that workers are forked from imports pandas and Arrow, and on a cluster an executor has
to start first: that takes as long as to analyse a topology and start its queries, and can go on
beside both.
"""

import logging
import threading

from pyspark.sql import SparkSession

log = logging.getLogger(__name__)


def start_python_workers(session: SparkSession) -> None:
    """Let Spark start the process that tasks' Python workers are forked from.

    The function is sent as it is: one that is known by its module would be imported over there,
    with all that this module needs.
    """
    session.range(1).mapInArrow(lambda batches: batches, "id BIGINT").collect()


def start_python_workers_beside(session: SparkSession) -> None:
    """The same where executors are processes of their own; nobody waits for it."""
    if not str(session.sparkContext.master).startswith("local"):
        threading.Thread(
            target=_start_safely, args=(session,), name="penstock-python-workers", daemon=True
        ).start()


def _start_safely(session: SparkSession) -> None:
    try:
        start_python_workers(session)
    except Exception as error:  # noqa: BLE001 - the first batch will show it
        log.debug("Python workers were not started ahead: %s", error)
