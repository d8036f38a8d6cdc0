"""Hosts of their own on one machine: a network namespace for master, driver and each worker.

Needs root and iproute2. Each host has an address on a bridge of the kernel and a bandwidth; it can
be cut off from all others, or the driver from one of them. Processes and files are the machine's:
a checkpoint is in a directory that all hosts share.
"""

import json
import os
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pyspark

from brokers.server_process import ServerProcess
from clusters.hdfs import hdfs
from clusters.manager import Manager
from clusters.object_store import object_store

WANTED = "PENSTOCK_HOSTS"
NET = "10.77.32"
BRIDGE = "penstock-t"
MASTER, DRIVER, WORKERS = f"{NET}.3", f"{NET}.2", (f"{NET}.11", f"{NET}.12", f"{NET}.13")
SLOTS, MEMORY_MB = 2, 2048
BANDWIDTH, DELAY = "400mbit", "1ms"


def missing() -> str | None:
    """Why there can be no hosts here; None if there can."""
    if not os.environ.get(WANTED):
        return "hosts are made by `make test-hosts` only"
    if os.geteuid() != 0:
        return "network namespaces need root"
    for program in ("ip", "tc", "java"):
        if shutil.which(program) is None:
            return f"{program} is not on the path"
    tried = subprocess.run(["ip", "netns", "add", _name(NET)], capture_output=True, check=False)
    if tried.returncode:
        return f"network namespaces cannot be made: {tried.stderr.decode().strip()}"
    _run("ip", "netns", "del", _name(NET))
    return None


class Hosts:
    """The network: who can talk to whom, and how fast."""

    def __init__(self) -> None:
        self.delayed = False  # whether the kernel can delay packets

    def start(self, ending: ExitStack) -> None:
        """Make it; `ending` takes it apart."""
        _run("ip", "link", "add", BRIDGE, "type", "bridge")
        ending.callback(_run, "ip", "link", "del", BRIDGE)
        _run("ip", "addr", "add", f"{NET}.1/24", "dev", BRIDGE)
        _run("ip", "link", "set", BRIDGE, "up")
        for address in (MASTER, DRIVER, *WORKERS):
            self._add(address, ending)

    def _add(self, address: str, ending: ExitStack) -> None:
        name, link = _name(address), _link(address)
        _run("ip", "netns", "add", name)
        ending.callback(_run, "ip", "netns", "del", name)
        _run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name)
        _run("ip", "link", "set", link, "master", BRIDGE, "up")
        _run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
        for one in ("eth0", "lo"):
            _run("ip", "-n", name, "link", "set", one, "up")
        # Both ways: what the host sends, and what the bridge sends to it.
        for inside, device in ((["-n", name], "eth0"), ([], link)):
            shaped = ["tc", *inside, "qdisc", "add", "dev", device, "root"]
            delay = [*shaped, "netem", "delay", DELAY, "rate", BANDWIDTH]
            self.delayed = subprocess.run(delay, capture_output=True, check=False).returncode == 0
            if not self.delayed:
                _run(*shaped, "tbf", "rate", BANDWIDTH, "burst", "256kb", "latency", "50ms")

    def received_bytes(self, address: str) -> int:
        """What a host has received so far."""
        return int(Path(f"/sys/class/net/{_link(address)}/statistics/tx_bytes").read_text())

    def cut(self, address: str) -> None:
        """From here on nothing reaches this host or comes from it."""
        _run("ip", "link", "set", _link(address), "down")

    def mend(self, address: str) -> None:
        """It is reachable again."""
        _run("ip", "link", "set", _link(address), "up")

    def part(self, one: str, other: str) -> None:
        """Two hosts no longer reach each other; everybody else reaches both."""
        for here, there in ((one, other), (other, one)):
            _run("ip", "-n", _name(here), "route", "add", "blackhole", f"{there}/32")

    def join(self, one: str, other: str) -> None:
        """They reach each other again."""
        for here, there in ((one, other), (other, one)):
            _run("ip", "-n", _name(here), "route", "del", "blackhole", f"{there}/32")


@contextmanager
def cluster_of_hosts(folder: Path) -> Iterator[tuple[Manager, Hosts]]:
    """A standalone cluster whose master, driver and workers are hosts of their own."""
    with ExitStack() as ending:
        hosts = Hosts()
        hosts.start(ending)
        page = f"http://{MASTER}:8080/json/"
        url = f"spark://{MASTER}:7177"
        options = ["--host", MASTER, "--port", "7177", "--webui-port", "8080"]
        master = _server("master.Master", options, MASTER, folder, lambda: _ask(page) is not None)
        ending.callback(master.kill)
        master.start()
        workers = {}
        for address in WORKERS:
            options = ["--host", address, "--cores", str(SLOTS), "--memory", f"{MEMORY_MB}m"]
            options += ["--webui-port", "0", "-d", str(folder / address / "work"), url]
            workers[address] = _server(
                "worker.Worker", options, address, folder,
                lambda address=address: address in _alive(page),
            )  # fmt: skip
            ending.callback(workers[address].kill)
            workers[address].start()
        yield (
            Manager(
                "hosts",
                {
                    "spark.master": url,
                    "spark.driver.host": DRIVER,
                    "spark.driver.bindAddress": DRIVER,
                },
                kill_node=lambda host: workers[host].kill(),
                revive_node=lambda host: workers[host].start(),
                environment={"SPARK_LOCAL_IP": DRIVER},
                inside=("ip", "netns", "exec", _name(DRIVER)),
            ),
            hosts,
        )


@contextmanager
def shared_files(kind: str, folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """A store on the master's host, which others reach over the network; URI and settings."""

    def answers(port: int) -> bool:
        with suppress(OSError), socket.create_connection((MASTER, port), timeout=2):
            return True
        return False

    inside = ("ip", "netns", "exec", _name(MASTER))
    if kind == "hdfs":
        with hdfs(folder, MASTER, inside, answers) as uri:
            yield uri, {}
    else:
        with object_store(folder, MASTER, inside, answers) as running:
            yield running


def _server(
    name: str, options: list[str], address: str, folder: Path, answers: object
) -> ServerProcess:
    home = Path(pyspark.__file__).parent
    place = folder / address
    place.mkdir()
    settings = {
        "SPARK_LOCAL_IP": address, "SPARK_HOME": home, "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
    }  # fmt: skip
    command = [
        "ip", "netns", "exec", _name(address), "env",
        *(f"{key}={value}" for key, value in settings.items()),
        f"{home}/bin/spark-class", f"org.apache.spark.deploy.{name}", *options,
    ]  # fmt: skip
    return ServerProcess(command, place, answers)  # type: ignore[arg-type]


def _alive(page: str) -> set[str]:
    found = (_ask(page) or {}).get("workers", [])
    return {str(one["host"]) for one in found if one["state"] == "ALIVE"}


def _ask(url: str) -> dict[str, list[dict[str, object]]] | None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with suppress(OSError, ValueError), opener.open(url, timeout=2) as answer:
        found = json.load(answer)
        return found if isinstance(found, dict) else None
    return None


def _name(address: str) -> str:
    return f"penstock-t{address.rpartition('.')[2]}"


def _link(address: str) -> str:
    return f"penstock-u{address.rpartition('.')[2]}"


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
