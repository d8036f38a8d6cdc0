"""A checkpoint is its run's until the driver's JVM is gone, not only the Python that started it.

A Python that is killed takes its lock with it. Its JVM lives on for up to some seconds, and queries
in it may still write, while a run that was started again at once would read.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from penstock.errors import Unavailable
from penstock.spark import handles
from penstock.spark.checkpoint.layout import Checkpoint

log = logging.getLogger(__name__)

LIMIT_S = 60.0  # for the JVM of a run that was killed


@contextmanager
def held_by_driver(
    session: SparkSession, checkpoint: Checkpoint, limit_s: float = LIMIT_S
) -> Iterator[None]:
    """Hold a checkpoint with the JVM as well, after that of an earlier run has let go of it."""
    try:
        let_go = handles.hold_file(session, checkpoint.driver_lock, limit_s)
    except Unavailable as reason:  # a file system without locks
        log.warning("the driver's JVM does not hold its checkpoint: %s", reason)
        yield
        return
    if let_go is None:
        raise Unavailable(
            f"checkpoint {checkpoint.directory} is still in use by the JVM of a run whose Python "
            f"is gone, {limit_s:g} s after this one was started; end that process."
        )
    try:
        yield
    finally:
        let_go()
