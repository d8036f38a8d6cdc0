"""How a cluster ends, with a script in the place of its JVM."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.spark.cluster import launch, supervisor
from penstock.spark.cluster.supervisor import ClusterState, process_started

LIMIT_S = 120.0
# It has children, as a worker has executors, notes when it is asked to end, and does not end.
JVM = """
trap 'touch "{noted}/asked"' TERM
sleep 3600 &
echo "$!" > "{noted}/child-1"
setsid sleep 3600 &
echo "$!" > "{noted}/child-2"
echo "Bound MasterWebUI to 127.0.0.1, and started at http://127.0.0.1:1"
echo "Starting Spark master at spark://127.0.0.1:7"
echo "Successfully registered with master"
while true; do wait; done
"""


class Cluster:
    """A supervisor and what it started."""

    def __init__(self, room: Path) -> None:
        self.directory, self.noted = room / "cluster", room
        (self.directory / "logs").mkdir(parents=True)
        self.state = self.directory / "state.json"
        self.process = subprocess.Popen(
            [sys.executable, "-I", str(supervisor.__file__), "--directory", str(self.directory),
             "--slots", "1", "--memory-mb", "512", "--state", str(self.state),
             "--", "bash", "-c", JVM.format(noted=room)],
            stdin=subprocess.PIPE,
        )  # fmt: skip

    def up(self) -> ClusterState:
        return launch.await_state(
            self.state, LIMIT_S, lambda: self.process.poll() is None, self.directory / "none"
        )

    def pids(self) -> list[int]:
        """Of the children of what stands for the JVM."""
        return [int(text) for file in self.noted.glob("child-*") if (text := file.read_text())]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.process.kill()
    made.process.communicate()
    for pid in made.pids():
        if process_started(pid) is not None:
            os.kill(pid, 9)


def until(holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def test_a_program_that_is_gone_takes_all_of_its_cluster_along_at_once(cluster: Cluster) -> None:
    assert cluster.up().master_url == "spark://127.0.0.1:7"
    until(lambda: len(cluster.pids()) == 2)
    assert cluster.process.stdin is not None
    cluster.process.stdin.close()
    assert cluster.process.wait(LIMIT_S) == 0
    assert [pid for pid in cluster.pids() if process_started(pid) is not None] == []
    assert not (cluster.noted / "asked").exists(), "nobody waits for what they would still do"
    assert not cluster.directory.exists()


def test_a_cluster_forgets_executors_that_ended_long_ago(tmp_path: Path) -> None:
    ended = tmp_path / "cluster/work/app-1"
    for number in range(20):
        (ended / str(number)).mkdir(parents=True)
    made = Cluster(tmp_path)
    try:
        until(lambda: len(list(ended.iterdir())) == supervisor.MOST_ENDED)
    finally:
        made.process.terminate()
        made.process.communicate()


def test_a_cluster_that_is_to_end_is_asked_first(cluster: Cluster) -> None:
    cluster.up()
    until(lambda: len(cluster.pids()) == 2)
    cluster.process.terminate()
    cluster.process.wait(LIMIT_S)
    assert (cluster.noted / "asked").exists()
    assert [pid for pid in cluster.pids() if process_started(pid) is not None] == []
