"""A checkpoint belongs to the driver's JVM as well, which outlives a Python that is killed."""

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.errors import Unavailable
from penstock.model.sinks import Memory
from penstock.spark.checkpoint.driver_lock import held_by_driver
from penstock.spark.checkpoint.layout import Checkpoint
from penstock.spark.run.together import RunningTopology
from spark.counting import ONCE, stream_topology
from spark.run_to import LIMIT_S

pytestmark = pytest.mark.spark

# As another JVM would: locks of this kind belong to a process.
HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def is_held(lock: Path) -> bool:
    with lock.open("w") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_a_checkpoint_is_held_until_the_jvm_of_another_run_is_gone(
    session: SparkSession, tmp_path: Path
) -> None:
    with Checkpoint(tmp_path / "c") as checkpoint:
        other = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(checkpoint.driver_lock)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        with other:
            assert other.stdout is not None
            assert other.stdout.readline() == "held\n"
            refused = pytest.raises(Unavailable, match="still in use by the JVM of a run")
            with refused, held_by_driver(session, checkpoint, limit_s=0.0):
                pass
            other.kill()
        with held_by_driver(session, checkpoint, LIMIT_S):
            assert is_held(checkpoint.driver_lock)
        assert not is_held(checkpoint.driver_lock)


def test_a_run_holds_its_checkpoint_with_the_jvm(session: SparkSession, tmp_path: Path) -> None:
    made = stream_topology()
    made.sink("out", "rows", Memory())
    with RunningTopology(made, session, tmp_path / "c", ONCE) as running:
        lock = Checkpoint(tmp_path / "c").driver_lock
        assert is_held(lock)
        assert running.wait(LIMIT_S)
    assert not is_held(lock)


def test_a_file_system_without_locks_is_said_and_used(
    session: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Checkpoint(tmp_path / "c") as checkpoint:
        checkpoint.driver_lock.mkdir()
        with held_by_driver(session, checkpoint):
            pass
    assert "the driver's JVM does not hold its checkpoint" in caplog.text
