"""The Spark session of a test process: one at a time, kept for the next file that can use it.

A context takes seconds to start, and its first batches are slow until Python's workers are there
and the JVM has compiled what they run. Files ask for a session by a name that stands for its
settings; only a file that needs others ends the one that is there.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.spark.act.executors import executor_settings
from penstock.spark.cluster.embedded import EmbeddedCluster, start_driver_jvm
from penstock.spark.cluster.session import settings
from penstock.spark.run.place import build_session

Build = Callable[[], SparkSession]

PLAIN = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}


def plain_session(more: Mapping[str, str]) -> SparkSession:
    """A session as a user builds it, who knows nothing of Penstock."""
    builder = SparkSession.builder
    for key, value in {**PLAIN, **more}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


@contextmanager
def cluster_session(
    kept: "KeptSession", cluster: EmbeddedCluster, name: str, key_groups: int, executors: int
) -> Iterator[SparkSession]:
    """A session of ours with so many executors of one slot each, all there from the start."""
    extra = {
        **cluster.settings,
        **executor_settings(executors, executors),
        "spark.executor.memory": "512m",
    }

    def build() -> SparkSession:
        return build_session(
            name, cluster.master_url, key_groups=key_groups, log_file=kept.log_file,
            quick_start=True, extra=extra,
        )  # fmt: skip

    with kept.lend(name, build) as lent:
        yield lent


class KeptSession:
    """At most one session; `lend` gives it to a file, and cleans up behind it."""

    def __init__(self, log_file: Path) -> None:
        self.log_file = log_file
        self._session: SparkSession | None = None
        self._name = ""
        # Workers would take the python3 of the PATH, which has no penstock.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        # What is on the JVM's command line holds for all sessions in it, so it is only this.
        java = settings(2, log_file, quick_start=True)["spark.driver.extraJavaOptions"]
        here = {"spark.driver.host": PLAIN["spark.driver.host"]}
        start_driver_jvm({"spark.driver.extraJavaOptions": java, **here})

    @contextmanager
    def lend(
        self, name: str, build: Build, changed: Mapping[str, str] | None = None
    ) -> Iterator[SparkSession]:
        """The session of this name, built if another or none is there.

        Settings that are `changed`, here or while it is lent, are as before when it is returned.
        """
        if self._name != name or self._session is None or not _lives(self._session):
            self.stop()
            self._session, self._name = build(), name
        session = self._session
        before = dict(session.conf.getAll)
        for key, value in (changed or {}).items():
            session.conf.set(key, value)
        yield session
        if _lives(session):
            _put_back(session, before)

    def stop(self) -> None:
        """End what is there."""
        if self._session is not None:
            self._session.stop()
        self._session = None


def _lives(session: SparkSession) -> bool:
    """Whether nobody has stopped it, who found it where it built one of its own."""
    return session.sparkContext._jsc is not None


def _put_back(session: SparkSession, before: Mapping[str, str]) -> None:
    for query in session.streams.active:
        query.stop()
    for table in session.catalog.listTables():
        if table.isTemporary:
            session.catalog.dropTempView(table.name)
    for key in session.conf.getAll.keys() - before.keys():
        session.conf.unset(key)
    for key, value in before.items():
        if session.conf.get(key) != value:
            session.conf.set(key, value)
