"""How a cluster is launched: its directory, configuration, command line, environment and state."""

import base64
import hmac
import json
import os
import secrets
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from penstock.errors import InvalidInput, Unavailable
from penstock.spark.cluster import class_archive, supervisor
from penstock.spark.cluster.installed import find_java, scala_version, spark_home
from penstock.spark.cluster.supervisor import ClusterState

START_LIMIT_S = 90.0
STOP_LIMIT_S = 30.0
SECRET = "spark.authenticate.secret"
CLUSTER = "penstock.Cluster"
COMPILER = "org.codehaus.janino.SimpleCompiler"  # of Spark's own generated code; runs what it made
PAGE_FILTER = "org.apache.spark.ui.JWSFilter"
# Spark's scripts start a JVM that does nothing but print the command of the one that is wanted.
QUICK_LAUNCH = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
LONGEST_SCRATCH = 60  # of 107 for the path of a socket, whose name takes 42
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


def check_size(slots: int, memory_mb: int | None) -> tuple[int, int]:
    """Slots and memory a worker can offer, or a sentence."""
    if slots < 1:
        raise InvalidInput(f"slots is {slots}; a cluster needs at least 1.")
    memory_mb = MB_PER_SLOT * slots if memory_mb is None else memory_mb
    if memory_mb < 512:
        raise InvalidInput(f"memory_mb is {memory_mb}; an executor needs at least 512.")
    return slots, memory_mb


def supervisor_log(directory: Path) -> Path:
    """Where a supervisor writes what goes wrong with itself."""
    return directory / "logs" / "supervisor.log"


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
        "spark.ui.killEnabled": "false",  # the page is for reading
        # Standalone Spark's pages cannot be switched off: nobody reads them without the secret.
        "spark.ui.filters": PAGE_FILTER,
        f"spark.{PAGE_FILTER}.param.secretKey": _base64(_page_key(secret)),
        "spark.master.ui.decommission.allow.mode": "DENY",
        "spark.worker.cleanup.enabled": "true",  # standing clusters see many applications
    }
    text = "".join(f"{key} {value}\n" for key, value in settings.items())
    path = _configuration(directory)
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
    (directory / "conf" / "log4j2.properties").write_text(_LOG_SETTINGS, encoding="utf-8")
    if (jar := class_archive.jar()) is not None:
        shutil.copyfile(jar, classes(directory))
    return secret


def classes(directory: Path) -> Path:
    """Classes of ours that go with a cluster; not there where none were prepared when it began."""
    return directory / "conf" / "classes.jar"


def behind_class_path(directory: Path) -> dict[str, str]:
    """The variable by which a JVM finds these whatever class path a program asks for."""
    jar = classes(directory)
    return {"SPARK_DIST_CLASSPATH": str(jar)} if jar.exists() else {}


def read_secret(directory: Path) -> str:
    """The secret of a cluster, for whoever may read its directory."""
    path = _configuration(directory)
    for line in path.read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition(" ")
        if key == SECRET:
            return value
    raise Unavailable(f"{path} holds no secret; restart the cluster with `penstock cluster up`.")


def _configuration(directory: Path) -> Path:
    return directory / "conf" / "spark-defaults.conf"


def page_authorization(secret: str) -> str:
    """What a request to a page of the cluster's master or worker has to carry: a signed token."""
    parts = ({"alg": "HS256"}, {"sub": "penstock"})
    signed = ".".join(_base64(json.dumps(part).encode()) for part in parts)
    signature = hmac.digest(_page_key(secret), signed.encode(), "sha256")
    return f"Bearer {signed}.{_base64(signature)}"


def _page_key(secret: str) -> bytes:
    """A key of its own: who learns it must not be able to start executors."""
    return hmac.digest(secret.encode(), b"pages", "sha256")


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def environment(directory: Path) -> dict[str, str]:
    """Environment of master and worker: ours, without settings meant for other clusters."""
    kept = {
        key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "_SPARK"))
    }
    return kept | {
        "SPARK_HOME": str(spark_home()),
        # Configuration is given by name: a folder on the class path would be in the way of a class
        # archive, also on that of executors.
        "SPARK_CONF_DIR": str(directory / "nothing"),
        "SPARK_LOCAL_DIRS": str(directory / "local"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SCALA_VERSION": scala_version(),  # what a worker starts executors with asks for it
        **behind_class_path(directory),  # the worker hands it to executors
    }


def cluster_command(directory: Path, slots: int, memory_mb: int) -> list[str]:
    """Master and worker in one JVM, compiled as it starts where nothing was prepared."""
    jar = class_archive.jar()
    source = Path(__file__).with_name("Cluster.java")
    options = shlex.split(f"{log_option(directory)} {class_archive.java_options()}")
    return [
        str(find_java()), "-cp", class_archive.class_path(jar), "-Xmx512m",
        "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
        # The directory is named on the command line so that the processes can be told apart.
        f"-Dpenstock.cluster={directory}", *options,
        *((COMPILER, str(source)) if jar is None else ()), CLUSTER,
        str(_configuration(directory)), str(slots), str(memory_mb), str(directory / "work"),
    ]  # fmt: skip


def log_option(directory: Path) -> str:
    """What makes a JVM of the cluster log as the others do."""
    return f'"-Dlog4j2.configurationFile={directory}/conf/log4j2.properties"'


def scratch_option(directory: Path) -> list[str]:
    """What makes a JVM unpack its libraries where they go with the cluster.

    One that is killed leaves them: 15 MB of RocksDB. Its sockets are beside them, and their whole
    path has to be short.
    """
    scratch = directory / "local"
    return [f'"-Djava.io.tmpdir={scratch}"'] if len(str(scratch)) <= LONGEST_SCRATCH else []


def supervisor_command(
    directory: Path, state: Path, slots: int, memory_mb: int, detached: bool = False
) -> list[str]:
    """The supervisor as a script of its own, whatever is importable where it runs."""
    return [
        sys.executable, "-I", str(Path(supervisor.__file__)), "--directory", str(directory),
        "--slots", str(slots), "--memory-mb", str(memory_mb), "--state", str(state),
        *(["--detached"] if detached else []),
        "--", *cluster_command(directory, slots, memory_mb),
    ]  # fmt: skip


def read_state(path: Path) -> ClusterState | None:
    """The state a supervisor published; None when there is none that can be read."""
    try:
        return ClusterState(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def await_state(
    path: Path, limit_s: float, alive: Callable[[], bool], log: Path, worker: bool = True
) -> ClusterState:
    """Wait until the supervisor says that master and `worker` are ready, or why they are not."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        lives = alive()  # before the look at the state: it may be written with the last breath
        state = read_state(path)
        if state is not None and state.failure:
            raise Unavailable(state.failure)
        if state is not None and state.worker >= worker:
            return state
        if not lives:
            said = supervisor.last_lines(log)
            raise Unavailable(f"The cluster's supervisor ended by itself; it said: {said}")
        time.sleep(0.05)
    raise Unavailable(f"The cluster was not ready within {limit_s:g} s.")
