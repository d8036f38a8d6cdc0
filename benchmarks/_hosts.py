"""Hosts of their own on one machine: a network namespace for each worker of a Spark cluster.

Needs root and the program `ip`. Executors of one host read each other's shuffle files from disk;
only between hosts do bytes cross a network, here a bridge of the kernel.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from penstock.errors import Unavailable

BRIDGE, NET = "penstock-b", "10.77.31"
LIMIT_S = 60.0


def can_have_hosts() -> bool:
    """Whether network namespaces can be made here."""
    return os.geteuid() == 0 and shutil.which("ip") is not None


@contextmanager
def cluster_of_hosts(hosts: int, slots: int, memory_mb: int) -> Iterator[dict[str, str]]:
    """A standalone cluster with a worker on each host; the settings of sessions on it."""
    if not can_have_hosts():
        raise Unavailable("Hosts of their own need root and the program ip.")
    with ExitStack() as ending, tempfile.TemporaryDirectory(prefix="penstock-hosts-") as folder:
        _network(hosts, ending)
        log = ending.enter_context((Path(folder) / "log").open("wb"))
        master = f"{NET}.1"
        url = f"spark://{master}:7177"
        options = ["--host", master, "--port", "7177", "--webui-port", "0"]
        _spark("deploy.master.Master", options, master, [], log, ending)
        _await(Path(folder) / "log", "New state: ALIVE", 1)
        for host in range(hosts):
            inside = ["ip", "netns", "exec", f"penstock{host}"]
            at = f"{NET}.{10 + host}"
            options = ["--host", at, "--cores", str(slots), "--memory", f"{memory_mb}m"]
            options += ["--webui-port", "0", "-d", f"{folder}/work{host}", url]
            _spark("deploy.worker.Worker", options, at, inside, log, ending)
        _await(Path(folder) / "log", "Successfully registered with master", hosts)
        yield {
            "spark.master": url, "spark.driver.host": master, "spark.driver.bindAddress": master,
            "spark.authenticate": "false",  # whatever a cluster before it in this process did
        }  # fmt: skip


@contextmanager
def cut_off(host: int) -> Iterator[None]:
    """Nothing reaches a host or comes from it; what runs there goes on."""
    _ip(f"link set penstock-v{host} down")
    try:
        yield
    finally:
        _ip(f"link set penstock-v{host} up")


def _network(hosts: int, ending: ExitStack) -> None:
    _ip(f"link add {BRIDGE} type bridge")
    ending.callback(_ip, f"link del {BRIDGE}")
    _ip(f"addr add {NET}.1/24 dev {BRIDGE}")
    _ip(f"link set {BRIDGE} up")
    for host in range(hosts):
        _ip(f"netns add penstock{host}")
        ending.callback(_ip, f"netns del penstock{host}")
        _ip(f"link add penstock-v{host} type veth peer name eth0 netns penstock{host}")
        _ip(f"link set penstock-v{host} master {BRIDGE} up")
        for what in (
            f"addr add {NET}.{10 + host}/24 dev eth0",
            "link set eth0 up",
            "link set lo up",
        ):
            _ip(f"-n penstock{host} {what}")


def _ip(words: str) -> None:
    subprocess.run(["ip", *words.split()], check=True, capture_output=True)


def _spark(
    name: str, options: list[str], address: str, inside: list[str], log: object, ending: ExitStack
) -> None:
    home = Path(pyspark.__file__).parent
    command = [*inside, str(home / "bin/spark-class"), f"org.apache.spark.{name}", *options]
    environment = os.environ | {"SPARK_LOCAL_IP": address, "SPARK_HOME": str(home)}
    process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)  # type: ignore[call-overload]
    ending.callback(process.wait)
    ending.callback(process.terminate)


def _await(log: Path, words: str, times: int) -> None:
    deadline = time.monotonic() + LIMIT_S
    while log.read_text(errors="replace").count(words) < times:
        if time.monotonic() > deadline:
            raise Unavailable(f"The cluster does not start: {log.read_text()[-500:]}")
        time.sleep(0.1)
