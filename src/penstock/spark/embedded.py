"""A standalone Spark cluster on loopback that lives and dies with the program.

Master and worker are children of a supervisor process (see supervisor.py) that ends them when
this program ends, in whatever way. The worker may offer more slots than the machine has cores:
tasks that wait (lookups, sleeps) then overlap, as they would on more machines.

Safe on a machine shared with others: everything listens on 127.0.0.1, files are in a directory
only the owner can enter, and nobody can register an application or an executor without the
cluster's secret, which never appears on a command line.
"""

import contextlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pyspark import SparkConf, SparkContext

from penstock.errors import InvalidInput, Unavailable
from penstock.spark import supervisor
from penstock.spark.supervisor import ClusterState

START_LIMIT_S = 90.0
STOP_LIMIT_S = 30.0
SECRET = "spark.authenticate.secret"
MB_PER_SLOT = 1024  # offered, not reserved: what is used is up to spark.executor.memory

_LOG_SETTINGS = """\
rootLogger.level = warn
rootLogger.appenderRef.err.ref = err
appender.err.type = Console
appender.err.name = err
appender.err.target = SYSTEM_ERR
appender.err.layout.type = PatternLayout
appender.err.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
logger.deploy.name = org.apache.spark.deploy
logger.deploy.level = info
"""


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
        self._slots, self._memory_mb = check_size(slots, memory_mb)
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
        """Session settings without which the cluster cannot be used."""
        return session_settings(self._running().master_url, self._secret)

    @property
    def directory(self) -> Path:
        """The private directory: logs/ of master and worker, work/ of executors."""
        return Path(self._running().directory)

    def start(self) -> None:
        """Start and wait until the worker is registered; Unavailable with the reason if not."""
        if self._process is not None:
            return
        find_java()
        self._directory = private_directory()
        self._secret = write_configuration(self._directory)
        state_path = self._directory / "state.json"
        command = supervisor_command(self._directory, state_path, self._slots, self._memory_mb)
        with (self._directory / "logs" / "supervisor.log").open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=log,
                env=environment(self._directory), start_new_session=True,
            )  # fmt: skip
        try:
            self._state = await_state(state_path, self._start_limit_s, self._process)
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.stop()

    def _running(self) -> ClusterState:
        if self._state is None:
            raise Unavailable("The embedded cluster is not started; call start() first.")
        return self._state


def check_size(slots: int, memory_mb: int | None) -> tuple[int, int]:
    """Slots and memory a worker can offer, or a sentence."""
    if slots < 1:
        raise InvalidInput(f"slots is {slots}; a cluster needs at least 1.")
    memory_mb = MB_PER_SLOT * slots if memory_mb is None else memory_mb
    if memory_mb < 512:
        raise InvalidInput(f"memory_mb is {memory_mb}; an executor needs at least 512.")
    return slots, memory_mb


def session_settings(master_url: str, secret: str) -> Mapping[str, str]:
    """Settings of a session that uses a cluster of ours; see start_driver_jvm for the secret."""
    return {
        "spark.master": master_url,
        "spark.authenticate": "true",
        SECRET: secret,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }


def start_driver_jvm(settings: Mapping[str, str]) -> None:
    """Start the driver's JVM, if there is none, before a session is built with these settings.

    PySpark would put every setting of the first session on the JVM's command line, where each
    user of the machine can read the secret; later settings reach the JVM through a socket. So
    the JVM is started here with all settings but the secret.
    """
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    conf = SparkConf(loadDefaults=False)
    conf.setAll([(key, value) for key, value in settings.items() if key != SECRET])
    SparkContext._ensure_initialized(conf=conf)


def find_java() -> Path:
    """The `java` that Spark's scripts would run."""
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if not os.access(java, os.X_OK):
            raise Unavailable(f"JAVA_HOME is {home}, but {java} cannot be run; unset or fix it.")
        return java
    found = shutil.which("java")
    if found is None:
        raise Unavailable(
            "There is no java on the PATH and JAVA_HOME is not set; install Java 17 or 21."
        )
    return Path(found)


def spark_home() -> Path:
    """The installed pyspark package, which is a whole Spark."""
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise Unavailable("pyspark is not installed for this Python; install it with pip.")
    return Path(spec.submodule_search_locations[0])


def private_directory() -> Path:
    """A new directory that only its owner can enter, with the places a cluster writes to."""
    directory = Path(tempfile.mkdtemp(prefix="penstock-cluster-"))
    for name in ("conf", "logs", "work", "local"):
        (directory / name).mkdir(mode=0o700)
    return directory


def write_configuration(directory: Path) -> str:
    """Write conf/ of a new cluster; returns its secret."""
    secret = secrets.token_hex(32)
    settings = {
        "spark.authenticate": "true",
        SECRET: secret,
        "spark.master.rest.enabled": "false",  # a second way in, which knows no secret
        "spark.ui.killEnabled": "false",  # the page on loopback is for reading
        "spark.master.ui.decommission.allow.mode": "DENY",
        "spark.worker.cleanup.enabled": "true",  # detached clusters see many applications
    }
    text = "".join(f"{key} {value}\n" for key, value in settings.items())
    path = directory / "conf" / "spark-defaults.conf"
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
    (directory / "conf" / "log4j2.properties").write_text(_LOG_SETTINGS, encoding="utf-8")
    return secret


def environment(directory: Path) -> dict[str, str]:
    """Environment of master and worker: ours, without settings meant for other clusters."""
    kept = {
        key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "_SPARK"))
    }
    return kept | {
        "SPARK_HOME": str(spark_home()),
        "SPARK_CONF_DIR": str(directory / "conf"),
        "SPARK_LOCAL_DIRS": str(directory / "local"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "512m",
        # The directory is named on the command line so that the processes can be told apart.
        "SPARK_DAEMON_JAVA_OPTS": f'-XX:+UseSerialGC "-Dpenstock.cluster={directory}"',
    }


def supervisor_command(directory: Path, state: Path, slots: int, memory_mb: int) -> list[str]:
    """The supervisor as a script of its own, whatever is importable where it runs."""
    return [
        sys.executable, "-I", str(Path(supervisor.__file__)), "--directory", str(directory),
        "--spark-home", str(spark_home()), "--slots", str(slots),
        "--memory-mb", str(memory_mb), "--state", str(state),
    ]  # fmt: skip


def read_state(path: Path) -> ClusterState | None:
    """The state a supervisor published; None when there is none that can be read."""
    try:
        return ClusterState(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def await_state(
    path: Path, limit_s: float, process: "subprocess.Popen[bytes] | None"
) -> ClusterState:
    """Wait until the supervisor says that the cluster is ready, or why it is not."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        gone = process is not None and process.poll() is not None
        state = read_state(path)
        if state is not None and state.failure:
            raise Unavailable(state.failure)
        if state is not None:
            return state
        if gone:
            log = supervisor.last_lines(path.parent / "logs" / "supervisor.log")
            raise Unavailable(f"The cluster's supervisor ended by itself; it said: {log}")
        time.sleep(0.05)
    raise Unavailable(f"The cluster was not ready within {limit_s:g} s.")


def ask_master(state: ClusterState) -> ClusterStatus:
    """The master's own account of its workers and applications."""
    answer: dict[str, Any] = {}
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with contextlib.suppress(OSError, ValueError), opener.open(
        f"{state.page_url}/json/", timeout=5
    ) as page:  # fmt: skip
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
