"""A standalone Spark cluster on loopback that lives and dies with the program.

Master and worker are one JVM below a supervisor process (see supervisor.py) that ends it when
this program ends, in whatever way. The worker may offer more slots than the machine has cores:
tasks that wait (lookups, sleeps) then overlap, as they would on more machines.

Safe on a machine shared with others: everything listens on 127.0.0.1, files are in a directory
only the owner can enter, and nobody can register an application or an executor without the
cluster's secret, which never appears on a command line.
"""

import contextlib
import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from penstock.errors import Unavailable
from penstock.spark.cluster import class_archive, launch
from penstock.spark.cluster.installed import find_java
from penstock.spark.cluster.launch import SECRET, START_LIMIT_S, STOP_LIMIT_S
from penstock.spark.cluster.supervisor import ClusterState


@dataclass(frozen=True)
class ClusterStatus:
    """What a cluster is doing; `detail` is a sentence when it is not up."""

    up: bool
    detail: str
    master_url: str = ""
    slots: int = 0
    slots_used: int = 0
    memory_mb: int = 0
    applications: int = 0
    supervisor_pid: int = 0
    directory: str = ""


class EmbeddedCluster:
    """A cluster for the time of a `with` block.

    Sessions must be built with all of `settings`; `master_url` alone does not get past the
    cluster's secret. `memory_mb` is what the worker offers to executors in all.
    """

    def __init__(
        self, slots: int, memory_mb: int | None = None, *, start_limit_s: float = START_LIMIT_S
    ) -> None:
        self._slots, self._memory_mb = launch.check_size(slots, memory_mb)
        self._start_limit_s = start_limit_s
        self._process: subprocess.Popen[bytes] | None = None
        self._state: ClusterState | None = None
        self._directory: Path | None = None
        self._secret = ""

    @property
    def master_url(self) -> str:
        """What `spark.master` has to be."""
        return self._running().master_url

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings of every session on this cluster; without them it cannot be used."""
        return session_settings(
            self._running(), self._secret, compiler_options(self._slots, os.cpu_count() or 1)
        )

    @property
    def directory(self) -> Path:
        """The private directory: logs/ of the cluster, work/ of executors."""
        return Path(self._running().directory)

    def start(self) -> None:
        """Start and wait until the worker is registered; Unavailable with the reason if not."""
        self.start_master()
        self.await_worker()

    def start_master(self) -> None:
        """Start, and wait only until sessions can register; the worker goes on starting."""
        if self._process is not None:
            return
        find_java()
        self._directory = launch.private_directory()
        self._secret = launch.write_configuration(self._directory)
        state_path = self._directory / "state.json"
        command = launch.supervisor_command(
            self._directory, state_path, self._slots, self._memory_mb
        )
        log_path = launch.supervisor_log(self._directory)
        with log_path.open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=log,
                env=launch.environment(self._directory), start_new_session=True,
            )  # fmt: skip
        self._await(worker=False)

    def await_worker(self) -> None:
        """Wait until executors can come; Unavailable with the reason if they cannot."""
        self._await(worker=True)

    def _await(self, worker: bool) -> None:
        process, directory = self._process, self._directory
        assert process is not None
        assert directory is not None
        try:
            self._state = launch.await_state(
                directory / "state.json", self._start_limit_s, lambda: process.poll() is None,
                launch.supervisor_log(directory), worker,
            )  # fmt: skip
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End everything that was started and remove the private directory; harmless twice."""
        process, self._process, self._state = self._process, None, None
        if process is not None:
            if process.stdin is not None:
                process.stdin.close()
            try:
                process.wait(STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()  # the kernel then kills master and worker
                process.wait()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)

    def status(self) -> ClusterStatus:
        """What the master says of itself."""
        if self._state is None:
            return ClusterStatus(False, "The embedded cluster is not started.")
        return ask_master(self._state)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _running(self) -> ClusterState:
        if self._state is None:
            raise Unavailable("The embedded cluster is not started; call start() first.")
        return self._state


def session_settings(
    state: ClusterState, secret: str, executor_options: Sequence[str] = ()
) -> Mapping[str, str]:
    """Settings of a session that uses a cluster of ours; see start_driver_jvm for the secret."""
    jar = class_archive.jar()
    directory = Path(state.directory)
    java = [launch.log_option(directory), *launch.scratch_option(directory)]
    java.append(class_archive.java_options())
    return {
        "spark.master": state.master_url,
        "spark.authenticate": "true",
        SECRET: secret,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.defaultJavaOptions": " ".join([*java, *executor_options]),
        **({} if jar is None else {"spark.executor.extraClassPath": str(jar)}),
    }


def compiler_options(slots: int, cores: int) -> Sequence[str]:
    """How far executors with so many slots in all optimise their code.

    The optimising compiler makes batches shorter once it has done its work; until then it makes
    them longer (`python -m benchmarks executor_compiler`). Where executors may have more slots than
    there are cores, several may start at once, under load, and would take those cores from the
    stream just to compile.
    """
    return () if slots <= cores else ("-XX:TieredStopAtLevel=1",)


def start_driver_jvm(settings: Mapping[str, str]) -> None:
    """Start the driver's JVM, if there is none, before a session is built with these settings.

    PySpark would put every setting of the first session on the JVM's command line, where each
    user of the machine can read the secret; later settings reach the JVM through a socket. So
    the JVM is started here with all settings but the secret.
    """
    # The commands about clusters do without these.
    from penstock.spark.cluster import java_classes
    from penstock.spark.handles import start_driver

    # A driver that is for executors elsewhere has to listen where they can reach it.
    if settings.get("spark.driver.host") == "127.0.0.1":
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", launch.QUICK_LAUNCH)
    prepared = {"spark.driver.defaultJavaOptions": class_archive.java_options()}
    found = {**java_classes.class_path(), **prepared, **settings}
    with _python_start():
        start_driver({key: value for key, value in found.items() if key != SECRET})


@contextlib.contextmanager
def _python_start() -> Iterator[None]:
    """A JVM that is started in here gives its Python processes a quick start."""
    before = os.environ.get("PYTHONPATH")
    folder = str(Path(__file__).with_name("python_start"))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, before]))
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def ask_master(state: ClusterState) -> ClusterStatus:
    """The master's own account of its workers and applications."""
    answer: dict[str, Any] = {}
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with contextlib.suppress(OSError, ValueError):
        secret = launch.read_secret(Path(state.directory))
        asking = urllib.request.Request(
            f"{state.page_url}/json/",
            headers={"Authorization": launch.page_authorization(secret)},
        )
        with opener.open(asking, timeout=5) as page:
            answer = json.load(page)
    if not answer:
        return ClusterStatus(
            False, f"The master at {state.master_url} does not answer.", state.master_url
        )
    return ClusterStatus(
        up=True,
        detail=f"Up at {state.master_url}.",
        master_url=state.master_url,
        slots=int(answer.get("cores", 0)),
        slots_used=int(answer.get("coresused", 0)),
        memory_mb=state.memory_mb,
        applications=len(answer.get("activeapps", [])),
        supervisor_pid=state.supervisor_pid,
        directory=state.directory,
    )
