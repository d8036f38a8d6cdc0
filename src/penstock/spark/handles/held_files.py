"""Files that the driver's JVM holds, for as long as it lives."""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from penstock.spark.handles.gateway import asking, java_class

POLL_S = 0.05


def hold_file(spark: SparkSession, file: Path, limit_s: float) -> Callable[[], None] | None:
    """Hold a file with the JVM, however that ends; gives what lets go of it.

    Another JVM that holds it is waited for; None if it still does in the end.
    """
    with asking(f"hold {file}"):
        opened = java_class(spark, "java.io.RandomAccessFile")(str(file), "rw")
        deadline = time.monotonic() + limit_s
        while opened.getChannel().tryLock() is None:
            if time.monotonic() > deadline:
                opened.close()
                return None
            time.sleep(POLL_S)

    def let_go() -> None:
        with suppress(Py4JError, OSError):  # the JVM has gone, and let go with that
            opened.close()

    return let_go
