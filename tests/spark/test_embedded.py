"""The embedded cluster never outlives its program, and the detached one is found again."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli.cluster import cluster as cluster_command
from penstock.errors import InvalidInput, Unavailable
from penstock.spark.cluster import launch, standing
from penstock.spark.cluster.embedded import EmbeddedCluster, compiler_options
from penstock.spark.cluster.supervisor import ClusterState, process_started, write_state
from spark.run_to import LIMIT_S, until

pytestmark = pytest.mark.spark

PROGRAM = """
import sys, time
from penstock.spark.cluster.embedded import EmbeddedCluster, start_driver_jvm
with EmbeddedCluster(slots=2) as cluster:
    if "session" in sys.argv:
        from pyspark.sql import SparkSession
        settings = dict(cluster.settings) | {
            "spark.ui.enabled": "false", "spark.executor.memory": "512m",
            "spark.executor.cores": "1", "spark.cores.max": "1", "spark.driver.memory": "512m",
        }
        start_driver_jvm(settings)
        builder = SparkSession.builder
        for key, value in settings.items():
            builder = builder.config(key, value)
        builder.getOrCreate().range(10).count()
    print(cluster.directory, flush=True)
    time.sleep(600)
"""


def processes_of(directory: str | Path) -> dict[int, str]:
    """Live processes with a cluster's directory on their command line."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(directory) in line:
            found[int(entry.parent.name)] = line
    return found


def executors_of(directory: str) -> list[str]:
    lines = processes_of(directory).values()
    return [line for line in lines if "CoarseGrainedExecutorBackend" in line]


@pytest.fixture
def program() -> Iterator[Callable[..., tuple["subprocess.Popen[str]", str]]]:
    """Starts a program with an embedded cluster; gives it and the cluster's directory."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> tuple["subprocess.Popen[str]", str]:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments], text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        started.append(process)
        assert process.stdout is not None
        return process, process.stdout.readline().strip()

    yield start
    for process in started:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def test_up_with_pages_that_need_its_secret_and_down() -> None:
    with EmbeddedCluster(slots=7) as cluster:
        status = cluster.status()
        assert (status.up, status.slots, status.slots_used) == (True, 7, 0)
        directory = cluster.directory
        assert directory.stat().st_mode & 0o777 == 0o700
        assert len(processes_of(directory)) == 2, "supervisor and one JVM"
        secret = cluster.settings["spark.authenticate.secret"]
        assert not any(secret in line for line in processes_of(directory).values())
        _pages_need_the_secret(cluster)
    assert processes_of(directory) == {}
    assert not directory.exists()
    assert not cluster.status().up
    cluster.stop()


def test_executors_that_crowd_the_cores_start_quickly() -> None:
    assert compiler_options(slots=2, cores=2) == ()
    assert compiler_options(slots=3, cores=2)


def test_kill_9_of_the_program_ends_everything(
    program: Callable[..., tuple["subprocess.Popen[str]", str]],
) -> None:
    process, directory = program("session")
    executors = executors_of(directory)
    assert executors, "an executor has to be there to be left behind"
    for command_line in executors:  # what it unpacks would be left behind elsewhere
        assert f"-Djava.io.tmpdir={directory}/" in command_line
    process.kill()
    until(lambda: not processes_of(directory))
    until(lambda: not Path(directory).exists())


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)]
)
def test_ctrl_c_and_sigterm_end_everything(
    program: Callable[..., tuple["subprocess.Popen[str]", str]], number: signal.Signals
) -> None:
    process, directory = program()
    assert len(processes_of(directory)) == 2
    os.killpg(process.pid, number)
    until(lambda: not processes_of(directory))
    until(lambda: not Path(directory).exists())
    process.wait(LIMIT_S)


@pytest.mark.long
def test_kill_9_of_the_supervisor_takes_the_cluster_along(
    program: Callable[..., tuple["subprocess.Popen[str]", str]],
) -> None:
    _, directory = program("session")
    assert executors_of(directory)
    supervisor = next(p for p, line in processes_of(directory).items() if "supervisor.py" in line)
    os.kill(supervisor, signal.SIGKILL)
    # The driver, which names the directory for its executors, is the program's.
    until(
        lambda: (
            not [
                line
                for line in processes_of(directory).values()
                if "java" in line and "SparkSubmit" not in line
            ]
        )
    )
    shutil.rmtree(directory)  # nobody is left who could have removed it


def test_a_cluster_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "CLUSTER", "nonsense")
    cluster = EmbeddedCluster(slots=1)
    with pytest.raises(Unavailable, match=r"JVM ended by itself.*nonsense"):
        cluster.start()
    assert not cluster.status().up


def test_missing_java_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(Unavailable, match="JAVA_HOME is /nowhere"):
        EmbeddedCluster(slots=1).start()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(Unavailable, match="install Java 17"):
        EmbeddedCluster(slots=1).start()


def test_impossible_sizes_are_refused() -> None:
    with pytest.raises(InvalidInput, match="slots is 0"):
        EmbeddedCluster(slots=0)
    with pytest.raises(InvalidInput, match="memory_mb is 10"):
        EmbeddedCluster(slots=1, memory_mb=10)


def command(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cluster_command, list(arguments))
    return result.exit_code, result.stdout


def test_standing_cluster_up_status_down(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert command("down") == (0, f"{standing.NONE_UP}\n")
    first = standing.cluster_up(slots=3)
    directory = first.status.directory
    try:
        assert first.changed
        assert first.status.slots == 3
        code, printed = command("up", "--slots", "5")
        assert code == 0
        assert "up already" in printed
        assert "with 3 slots" in printed
        code, printed = command("status", "--json")
        assert (code, json.loads(printed)["slots"]) == (0, 3)
        assert "secret" not in printed
        assert standing.cluster_settings()["spark.master"] == first.status.master_url
    finally:
        down = standing.cluster_down()
    assert down.changed
    assert processes_of(directory) == {}
    assert not Path(directory).exists()
    assert not standing.cluster_status().up
    with pytest.raises(Unavailable, match="No cluster is up"):
        standing.cluster_settings()


def test_a_stale_state_is_not_taken_for_a_cluster(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    started = process_started(os.getpid())
    assert started is not None
    # The pid is alive, but it is this test: only the start time tells.
    state = ClusterState(str(tmp_path / "none"), 1, 512, os.getpid(), started - 1, "spark://x:1")
    write_state(standing.state_directory() / "cluster.json", state)
    assert not standing.cluster_status().up
    assert not standing.cluster_down().changed


def _pages_need_the_secret(cluster: EmbeddedCluster) -> None:
    state = cluster._running()
    log = (cluster.directory / "logs" / "cluster.log").read_text()
    ports = re.findall(r"WorkerWebUI.* started at http://[^:]+:(\d+)", log)
    assert ports, log
    secret = launch.read_secret(cluster.directory)
    for page in (state.page_url, f"http://127.0.0.1:{ports[0]}"):
        for token in (None, launch.page_authorization("another"), "Bearer x"):
            assert _status_of(f"{page}/json/", token) == 403
            assert _status_of(f"{page}/", token) == 403
        assert _status_of(f"{page}/json/", launch.page_authorization(secret)) == 200


def _status_of(url: str, token: str | None) -> int:
    asking = urllib.request.Request(url, headers={} if token is None else {"Authorization": token})
    try:
        with urllib.request.urlopen(asking, timeout=LIMIT_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
