"""A new executor has its Python process before its first task, and that task uses it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.control.actions import SetExecutors
from penstock.spark.act.executors import SparkExecutors, executor_settings
from penstock.spark.cluster import java_classes
from penstock.spark.cluster.embedded import EmbeddedCluster
from penstock.spark.cluster.launch import SECRET
from penstock.spark.run.place import build_session
from spark.killed_program import processes_below
from spark.run_to import LIMIT_S, until
from spark.sessions import KeptSession

pytestmark = pytest.mark.spark

OURS, SPARKS = b"penstock.spark.cluster.daemon", b"pyspark.daemon"


@pytest.fixture
def started(cluster: EmbeddedCluster, kept_session: KeptSession) -> Iterator["Started"]:
    kept_session.stop()  # executors of this one are to be new
    made = Started(cluster, kept_session.log_file)
    yield made
    made.session.stop()


class Started:
    """Sessions of one slot that start with one executor."""

    def __init__(self, cluster: EmbeddedCluster, log_file: Path) -> None:
        self._cluster, self._log_file = cluster, log_file

    def begin(self, **more: str) -> SparkSession:
        extra = {
            **self._cluster.settings, **executor_settings(1, 2), "spark.executor.memory": "512m",
            **{key.replace("_", "."): value for key, value in more.items()},
        }  # fmt: skip
        self.session = build_session(
            "warm", self._cluster.master_url, log_file=self._log_file, quick_start=True, extra=extra
        )
        self.executors = SparkExecutors(self.session, grow_limit_s=LIMIT_S)
        until(lambda: self.executors.executors() == 1)
        return self.session


def processes(session: SparkSession) -> list[int]:
    """Where Python tasks of a session ran: the parents of their processes."""

    def parent(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"id": [os.getppid()] * len(batch)})

    return sorted(
        {row.id for row in session.range(0, 8, 1, 4).mapInArrow(parent, "id long").collect()}
    )


def test_the_first_python_task_finds_its_process(started: Started) -> None:
    session = started.begin()
    assert session.conf.get(java_classes.PLUGINS) == java_classes.WARM_START
    until(lambda: bool(_pythons(OURS)), 60)  # no task has run
    (waiting,) = _pythons(OURS)
    assert processes(session) == [waiting]
    assert _pythons(OURS) == [waiting], "it is the kind that tasks ask for, and no other came"


def test_executors_that_follow_know_what_the_first_was_asked_for(started: Started) -> None:
    session = started.begin(spark_python_daemon_module="pyspark.daemon")
    assert not _pythons(SPARKS), "nobody knows yet what tasks will ask for"
    assert len(processes(session)) == 1
    assert started.executors.act(SetExecutors(2)).done
    until(lambda: len(_pythons(SPARKS)) == 2, 60)  # no task has run on the second
    first = _pythons(SPARKS)
    until(lambda: processes(session) == first, 60)
    assert _pythons(SPARKS) == first


def test_a_plugin_of_the_users_own_is_left_alone(session: SparkSession) -> None:
    ours = {SECRET: "x", **java_classes.use_with({})}
    assert java_classes.warm_start(ours) == {java_classes.PLUGINS: java_classes.WARM_START}
    assert java_classes.warm_start({**ours, java_classes.PLUGINS: "mine"}) == {}
    elsewhere = {**ours, "spark.executor.extraClassPath": "elsewhere"}
    assert java_classes.warm_start(elsewhere) == {}, "executors do not have the class there"
    assert java_classes.warm_start({}) == {}, "another's cluster does not have it either"


def _pythons(program: bytes) -> list[int]:
    """Processes that executors fork their workers from, not the workers."""
    found = set(processes_below(os.getpid(), program))
    return sorted(pid for pid in found if _parent(pid) not in found)


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
