"""A YARN cluster on loopback: a ResourceManager and two node managers, each with an address.

Each node has room for two containers of an executor's size, so that, beside the application's own
container, three executors fit and a fourth does not.
"""

import json
import os
import shutil
import signal
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pyspark

from brokers.free_port import free_port
from brokers.server_process import ServerProcess
from clusters.hadoop import JARS, configuration
from clusters.manager import Manager

MASTER = "127.0.0.1"
NODES = ("127.0.0.2", "127.0.0.3")
CONTAINER_MB = 896  # 512 for the heap, 384 for what is beside it
NODE_MB = 2 * CONTAINER_MB + 256
EXECUTORS_AT_MOST = 2 * len(NODES) - 1  # one container is the application's own
LOST_AFTER_MS = 40_000  # a node that says nothing; ten minutes unless told


@contextmanager
def yarn_cluster(folder: Path) -> Iterator[Manager]:
    """A cluster for as long as the block; what it started is ended with it, however it went."""
    ports = {
        f"yarn.resourcemanager.{name}address": f"{MASTER}:{free_port()}"
        for name in ("", "scheduler.", "resource-tracker.", "admin.", "webapp.")
    }
    page = f"http://{ports['yarn.resourcemanager.webapp.address']}/ws/v1/cluster"
    common = {
        "yarn.resourcemanager.hostname": MASTER,
        **ports,
        "yarn.nm.liveness-monitor.expiry-interval-ms": str(LOST_AFTER_MS),
        "yarn.am.liveness-monitor.expiry-interval-ms": "30000",
        "yarn.scheduler.minimum-allocation-mb": "128",
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "250",
        "yarn.timeline-service.enabled": "false",
    }
    with ExitStack() as ending:
        ending.callback(_end_what_is_left, folder)
        conf = _configuration(folder / "rm", common)
        manager = _server("resourcemanager.ResourceManager", conf, lambda: _ask(page) is not None)
        ending.callback(manager.kill)
        manager.start()
        nodes = {}
        for number, host in enumerate(NODES, 1):
            conf = _configuration(folder / f"nm{number}", common | _node(host, folder, number))
            nodes[host] = _server(
                "nodemanager.NodeManager", conf, lambda host=host: host in _running_nodes(page)
            )
            ending.callback(nodes[host].kill)
            nodes[host].start()
        home = Path(pyspark.__file__).parent
        yield Manager(
            "yarn",
            {
                "spark.master": "yarn",
                "spark.driver.host": MASTER,
                "spark.driver.bindAddress": MASTER,
                # The nodes have Spark's jars already: none is sent.
                "spark.yarn.jars": f"local:{home}/jars/*",
                "spark.yarn.stagingDir": f"file://{folder}/staging",
                "spark.yarn.am.memory": "512m",
            },
            kill_node=lambda host: nodes[host].kill(),
            revive_node=lambda host: nodes[host].start(),
            environment={"HADOOP_CONF_DIR": str(folder / "rm")},
        )


def _node(host: str, folder: Path, number: int) -> dict[str, str]:
    addresses = {
        f"yarn.nodemanager.{name}address": f"{host}:{free_port()}"
        for name in ("", "localizer.", "collector-service.", "webapp.")
    }
    return {
        "yarn.nodemanager.hostname": host,
        **addresses,
        "yarn.nodemanager.local-dirs": str(folder / f"local{number}"),
        "yarn.nodemanager.log-dirs": str(folder / f"logs{number}"),
        # Without it, one that is started again deletes the folders that its containers work in.
        "yarn.nodemanager.recovery.enabled": "true",
        "yarn.nodemanager.recovery.dir": str(folder / f"recovery{number}"),
        "yarn.nodemanager.resource.memory-mb": str(NODE_MB),
        "yarn.nodemanager.resource.cpu-vcores": "4",
        # Java reserves far more addresses than it uses.
        "yarn.nodemanager.vmem-check-enabled": "false",
        # How full the disk of the machine is that runs the test is none of its concern.
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
    }


def _configuration(place: Path, settings: Mapping[str, str]) -> Path:
    calculator = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
    queue = {
        "yarn.scheduler.capacity.root.queues": "default",
        "yarn.scheduler.capacity.root.default.capacity": "100",
        "yarn.scheduler.capacity.resource-calculator": calculator,
        "yarn.scheduler.capacity.maximum-am-resource-percent": "0.5",
    }
    return configuration(place, {"yarn-site": settings, "capacity-scheduler": queue})


def _server(name: str, conf: Path, answers: object) -> ServerProcess:
    java = [
        "java", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
        "--add-opens=java.base/java.lang=ALL-UNNAMED", f"-Dpenstock.folder={conf.parent}",
        "-cp", f"{conf}:{os.environ[JARS]}/*", f"org.apache.hadoop.yarn.server.{name}",
    ]  # fmt: skip
    # Containers are started with the Java that their node manager knows of.
    home = Path(os.path.realpath(str(shutil.which("java")))).parents[1]
    return ServerProcess(["env", f"JAVA_HOME={home}", *java], conf, answers)  # type: ignore[arg-type]


def _running_nodes(page: str) -> set[str]:
    answer = _ask(f"{page}/nodes") or {}
    found = (answer.get("nodes") or {}).get("node") or []
    return {str(one["nodeHostName"]) for one in found if one["state"] == "RUNNING"}


def _ask(url: str) -> dict[str, dict[str, list[dict[str, object]]]] | None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with suppress(OSError, ValueError), opener.open(url, timeout=2) as answer:
        found = json.load(answer)
        return found if isinstance(found, dict) else None
    return None


def _end_what_is_left(folder: Path) -> None:
    """Containers outlive a node manager that was killed: end those of this folder, by their ids."""
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if str(folder).encode() in entry.read_bytes() and int(entry.parent.name) != os.getpid():
                os.kill(int(entry.parent.name), signal.SIGKILL)
