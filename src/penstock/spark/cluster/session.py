"""The Spark session Penstock runs in: quiet, on loopback, safe, and quick at small batches."""

import logging
import os
import pkgutil
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from penstock.errors import Unavailable
from penstock.masking import SPARK_REDACTION
from penstock.spark import handles
from penstock.spark.cluster import java_classes
from penstock.spark.cluster.embedded import start_driver_jvm
from penstock.spark.cluster.generated_code import code_settings
from penstock.spark.cluster.launch import SECRET
from penstock.spark.handles.driver import leave_out_search_for_sources, register_sources
from penstock.spark.handles.state_stores import ROCKSDB, STATE_STORE

_STREAMING = "org.apache.spark.sql.execution.streaming"
LOOPBACK = "127.0.0.1"
NEAR = {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
# For JVMs that share a few cores: parallel collectors would take those from the stream. Such a JVM
# has little room for compiled code, and compiles no more once that is full; so it gets as much as
# others have.
# Nor does it collect garbage just because it has loaded more classes than a small program has.
FEW_CORES = "-XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m -XX:MetaspaceSize=160m"
# For drivers beside them: the optimising compiler would take a core for the first minutes, and what
# a batch asks of the driver gains nothing from it.
QUICK_START = f"-XX:TieredStopAtLevel=1 {FEW_CORES}"
# Spark would check the place of every value of an Arrow column, and twice that it is there: a
# quarter of what a row from Python costs. What our sources send was validated before.
UNCHECKED = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
# Where LocalFiles cannot be used, Hadoop starts a program for the permissions of each file. Java
# would start another first that starts it: 9 ms for a file of a checkpoint instead of 6.5.
ONE_PROCESS = "-Djdk.lang.Process.launchMechanism=VFORK"

# YARN's containers have temporary folders deep below others, and the path of a socket is short.
SHORT_SOCKETS = {"spark.python.unix.domain.socket.dir": "/tmp"}


def settings(
    key_groups: int, log_file: Path | None = None, quick_start: bool = False
) -> dict[str, str]:
    """Every setting that differs from Spark's default, each with its reason."""
    everywhere = [UNCHECKED, ONE_PROCESS]
    # Spark matches long Python errors with a regex that recurses per character.
    java = ["-Xss4m", *everywhere, *([QUICK_START] if quick_start else [])]
    if log_file is not None:
        java.append(f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}")
        java.append(f"-Dpenstock.log={log_file}")
    return {
        # The UI listens on every interface and ends jobs on a plain GET.
        "spark.ui.enabled": "false",
        "spark.ui.killEnabled": "false",
        # The terminal belongs to the live view.
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": " ".join(java),
        "spark.executor.extraJavaOptions": " ".join(
            [*everywhere, *([FEW_CORES] if quick_start else [])]
        ),
        # Results must not depend on where the driver runs.
        "spark.sql.session.timeZone": "UTC",
        # The default manager forks a process for chmod: 53 ms for each log file instead of 13 ms.
        "spark.sql.streaming.checkpointFileManagerClass": (
            f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
        # (RawLocalFileSystem would take 7 ms, but RocksDB's snapshots fail on it with a
        # ClassCastException that is only logged: changes would then be replayed from the start.)
        # Hadoop's local file system, where our checkpoints are, keeps and checks a checksum of each
        # file; Spark's own beside it would double the files that each key group writes in a batch.
        "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
        # Adaptive plans hide their stages from whoever measures them.
        "spark.sql.adaptive.streaming.stateless.enabled": "false",
        # One state partition is one key group.
        "spark.sql.shuffle.partitions": str(key_groups),
        # RocksDB uploads only changes; a key group that moves loads a snapshot and replays them.
        STATE_STORE: ROCKSDB,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.stateStore.maintenanceInterval": "10s",
        # Counting rows reads before each write.
        "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
        # A version of state that a failed attempt wrote can never be taken for the committed one.
        "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
        # One store for each key group of a join, not four that are opened and committed each
        # by itself. A checkpoint that was begun otherwise stays as it is.
        "spark.sql.streaming.join.stateFormatVersion": "3",
        # Each task would tell the driver of each commit and wait for an answer, so that it finds
        # state that a batch did not write. Batches of ours are run whole, whatever a sink takes.
        "spark.sql.streaming.stateStore.commitValidation.enabled": "false",
        # Spark forgets generated code beyond 100 classes, which eight queries exceed: every batch
        # would then compile all of it again, on the driver and on executors.
        **code_settings(),
        # A key group's task waits for the executor that holds its state, and never for a neighbour.
        "spark.locality.wait.process": "3s",
        "spark.locality.wait.node": "0s",
        # Executors are removed by draining; a stuck one is cut off.
        "spark.decommission.enabled": "true",
        "spark.executor.decommission.forceKillTimeout": "20s",
        "spark.dynamicAllocation.enabled": "false",
        # A query that is stopped while a task hangs must not hang its caller.
        "spark.sql.streaming.stopTimeout": "30s",
        # Rows cross to Python as Arrow.
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Each Arrow batch has a cost of its own. Rows may be wide, so their bytes are bounded too.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.sql.execution.arrow.maxBytesPerBatch": str(64 * 2**20),
        # Workers are forked from a process that has imported what they need.
        "spark.python.daemon.module": "penstock.spark.cluster.daemon",
        # Over TCP, what a Python task is to do comes in two small packets, and the second waits
        # 40 ms until the first is acknowledged.
        "spark.python.unix.domain.socket.enabled": "true",
        # What executors say, however long they live: four files of 32 MB each.
        "spark.executor.logs.rolling.strategy": "size",
        "spark.executor.logs.rolling.maxSize": str(32 * 2**20),
        "spark.executor.logs.rolling.maxRetainedFiles": "4",
        # Names of secrets beyond Spark's own list.
        "spark.redaction.regex": SPARK_REDACTION,
    }


def build_session(
    name: str,
    master: str = "local[2]",
    *,
    key_groups: int = 8,
    log_file: Path | None = None,
    quick_start: bool = False,
    extra: dict[str, str] | None = None,
    sources: Sequence[type[DataSource]] = (),
) -> SparkSession:
    """A session with Penstock's settings that can read `sources`; `extra` wins over them.

    `quick_start` is for sessions that live for minutes, or share a few cores with their executors.
    """
    # Nothing outside this machine needs to reach a driver whose executors are on it. (Of pods, the
    # address of their API server says nothing: it may be that of a tunnel.)
    near = NEAR if master.startswith(("local", f"spark://{LOOPBACK}:")) else {}
    if (facing := _address_facing(master)) is not None:
        os.environ.setdefault("SPARK_LOCAL_IP", facing)
    _choose_python()
    given = {
        "spark.master": master,
        **near,
        **(SHORT_SOCKETS if master == "yarn" else {}),
        **settings(key_groups, log_file, quick_start),
        **(extra or {}),
    }
    builder = SparkSession.builder.appName(name)
    for key, value in given.items():
        builder = builder.config(key, value)
    with _errors_to(log_file):
        start_driver_jvm(given)
        # Executors in this JVM or in a cluster of ours are on this machine, and of this user.
        if master.startswith("local") or SECRET in given:
            for key, value in java_classes.use_with(given).items():
                builder = builder.config(key, value)
        session = builder.getOrCreate()
    with suppress(Unavailable):
        handles.lighten_configuration(session)
    # PySpark prints every failed analysis with its stack; Penstock says it in one sentence.
    for logger in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(logger).setLevel(logging.CRITICAL + 1)
    if not _offers_sources():
        with suppress(Unavailable):
            leave_out_search_for_sources(session)
    register_sources(session, *sources)
    return session


def _offers_sources() -> bool:
    """Whether Spark might find a Python source in an installed package, by the package's name."""
    if os.environ["PYSPARK_DRIVER_PYTHON"] != sys.executable:
        return True  # another Python has other packages
    return any(module.name.startswith("pyspark_") for module in pkgutil.iter_modules())


@contextmanager
def temporary_settings(session: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """Settings of a session while something is planned; what they were is put back."""
    before = {name: session.conf.get(name, None) for name in wanted}
    try:
        for name, value in wanted.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            if old is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, old)


def start_driver_ahead(key_groups: int, log_file: Path | None, quick_start: bool) -> None:
    """The JVM of a session that is to be built on this machine, while its cluster still starts."""
    _choose_python()
    with _errors_to(log_file):
        start_driver_jvm({**NEAR, **settings(key_groups, log_file, quick_start)})


def _choose_python() -> None:
    """Without this the source's runner may pick another interpreter than the driver's."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def _address_facing(master: str) -> str | None:
    """The address of this machine, which may have several, that a standalone master sees."""
    host, _, port = master.removeprefix("spark://").split(",")[0].rpartition(":")
    if not master.startswith("spark://") or not port.isdigit():
        return None
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unsent:
        unsent.connect((host, int(port)))  # finds the way there, and sends nothing
        return str(unsent.getsockname()[0])
    return None


@contextmanager
def _errors_to(log_file: Path | None) -> Iterator[None]:
    """What the JVM prints on its standard error, from its start on, goes to the log file too."""
    if log_file is None:
        yield
        return
    sys.stderr.flush()
    kept = os.dup(2)
    log = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(log, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(log)
