"""What kubelets would do, for a few nodes that are all this machine.

It registers the nodes and says that they live, runs the pods that the scheduler binds to them as
processes, tells the API server how each fares, and ends those that are deleted: first by the hook
or SIGTERM, after the grace period by SIGKILL. A node can be lost: its pods are killed and it says
nothing more.
"""

import itertools
import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kubernetes.api import Api, Refused
from kubernetes.pod_process import container_of

log = logging.getLogger(__name__)

HEARTBEAT_S = 3.0
WATCH_S = 30.0
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


@dataclass(frozen=True)
class Node:
    """A machine of the cluster: what it offers, and where addresses of its pods begin."""

    name: str
    network: str  # the first three numbers of its addresses, which are all on loopback
    cores: int
    memory_mb: int


class NodeAgent:
    """Serves nodes of a cluster until the block ends; every pod of theirs ends with it."""

    def __init__(self, api: Api, nodes: tuple[Node, ...], folder: Path) -> None:
        self._api, self._folder = api, folder
        self._nodes = {node.name: node for node in nodes}
        self._silent: set[str] = set()
        self._numbers = itertools.count(2)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._seen: dict[str, str] = {}  # uid of a pod -> its node
        self._ending: set[str] = set()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._beat, daemon=True),
            threading.Thread(target=self._follow, daemon=True),
        ]

    def __enter__(self) -> Self:
        for node in self._nodes.values():
            self._register(node)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        for process in list(self._processes.values()):
            _kill(process)

    def node_at(self, address: str) -> str:
        """The node that a pod with this address is on."""
        network = address.rpartition(".")[0]
        return next(one.name for one in self._nodes.values() if one.network == network)

    def lose(self, name: str) -> None:
        """The machine is gone: its pods with it, and nobody says so."""
        with self._lock:
            self._silent.add(name)
            gone = [uid for uid, node in self._seen.items() if node == name]
        for uid in gone:
            if uid in self._processes:
                _kill(self._processes[uid])

    def find(self, name: str) -> None:
        """It is back, empty: a kubelet then says of its former pods that they are no more."""
        with self._lock:
            self._silent.discard(name)
        self._register(self._nodes[name])
        bound = self._api.get("/api/v1/pods", fieldSelector=f"spec.nodeName={name}")
        for pod in bound["items"]:
            if "deletionTimestamp" in pod["metadata"]:
                self._consider(pod)
            elif pod["metadata"]["uid"] in self._seen:
                self._forget(pod, 137)

    def _register(self, node: Node) -> None:
        body = {
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": node.name, "labels": {"kubernetes.io/hostname": node.name}},
        }  # fmt: skip
        with suppress(Refused):  # it was registered before
            self._api.post("/api/v1/nodes", body)
        lease = {"metadata": {"name": node.name}, "spec": {"holderIdentity": node.name}}
        with suppress(Refused):
            self._api.post(LEASES, lease)
        offered = {"cpu": str(node.cores), "memory": f"{node.memory_mb}Mi", "pods": "20"}
        addresses = [{"type": "InternalIP", "address": f"{node.network}.1"}]
        status = {
            "capacity": offered, "allocatable": offered, "addresses": addresses,
            "conditions": [_ready()],
        }  # fmt: skip
        self._api.patch(f"/api/v1/nodes/{node.name}/status", {"status": status})

    def _beat(self) -> None:
        while not self._ended.wait(HEARTBEAT_S):
            for name in self._nodes.keys() - self._silent:
                now = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
                spec = {"holderIdentity": name, "renewTime": now, "leaseDurationSeconds": 40}
                with suppress(OSError, Refused):
                    self._api.patch(f"{LEASES}/{name}", {"spec": spec})
                    self._api.patch(
                        f"/api/v1/nodes/{name}/status", {"status": {"conditions": [_ready()]}}
                    )

    def _follow(self) -> None:
        while not self._ended.is_set():
            try:
                listed = self._api.get("/api/v1/pods")
                for pod in listed["items"]:
                    self._consider(pod)
                since = listed["metadata"]["resourceVersion"]
                for event in self._api.watch("/api/v1/pods", since, WATCH_S):
                    if event["type"] in ("ADDED", "MODIFIED"):
                        self._consider(event["object"])
            except (OSError, Refused, ValueError) as error:
                if not self._ended.is_set():
                    log.warning("pods are listed anew: %s", error)
                    self._ended.wait(0.5)

    def _consider(self, pod: Mapping[str, Any]) -> None:
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName", "")
        if node not in self._nodes or node in self._silent or self._ended.is_set():
            return
        over = pod["status"]["phase"] in ("Succeeded", "Failed")
        deleted = "deletionTimestamp" in pod["metadata"]
        if deleted and uid not in self._ending:
            self._ending.add(uid)
            threading.Thread(target=self._end, args=(pod,), daemon=True).start()
        elif not deleted and not over and uid not in self._seen:
            self._seen[uid] = node
            threading.Thread(target=self._run, args=(pod, self._nodes[node]), daemon=True).start()

    def _run(self, pod: Mapping[str, Any], node: Node) -> None:
        """Start a pod's process, wait for its end, and say both."""
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        address = f"{node.network}.{next(self._numbers)}"
        try:
            folder = self._folder / f"{name}-{uid[:8]}"
            maps = f"/api/v1/namespaces/{pod['metadata']['namespace']}/configmaps"
            container = container_of(
                pod, address, folder, lambda one: self._api.get(f"{maps}/{one}").get("data", {})
            )
            process = container.start()
        except (OSError, KeyError, ValueError, Refused) as error:
            log.warning("pod %s cannot be started: %r", name, error)
            self._tell(pod, "Failed", {"terminated": {"exitCode": 128, "message": repr(error)}})
            return
        self._processes[uid] = process
        began = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._tell(pod, "Running", {"running": {"startedAt": began}}, address)
        code = process.wait()
        if node.name in self._silent or self._ended.is_set():
            return
        if uid not in self._ending:
            self._forget(pod, code if code >= 0 else 128 - code)

    def _end(self, pod: Mapping[str, Any]) -> None:
        """End a pod that was deleted, within its grace period, and let the API server forget it."""
        uid, process = pod["metadata"]["uid"], self._processes.get(pod["metadata"]["uid"])
        if process is not None:
            # Spark's hook before the end of an executor is a script that only sends this.
            hook = "lifecycle" in pod["spec"]["containers"][0]
            process.send_signal(signal.SIGPWR if hook else signal.SIGTERM)
            try:
                process.wait(pod["metadata"].get("deletionGracePeriodSeconds", 30))
            except subprocess.TimeoutExpired:
                _kill(process)
                process.wait()
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
        with suppress(OSError, Refused):
            self._api.delete(_path(pod), body)

    def _forget(self, pod: Mapping[str, Any], code: int) -> None:
        phase = "Succeeded" if code == 0 else "Failed"
        ended = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._tell(pod, phase, {"terminated": {"exitCode": code, "finishedAt": ended}})

    def _tell(
        self, pod: Mapping[str, Any], phase: str, state: Mapping[str, Any], address: str = ""
    ) -> None:
        ready = phase == "Running"
        container = {
            "name": pod["spec"]["containers"][0]["name"], "state": state, "ready": ready,
            "restartCount": 0, "image": pod["spec"]["containers"][0]["image"], "imageID": "",
        }  # fmt: skip
        status: dict[str, Any] = {
            "phase": phase, "containerStatuses": [container],
            "conditions": [{"type": "PodScheduled", "status": "True"},
                           {"type": "Ready", "status": str(ready)}],
        }  # fmt: skip
        if address:
            status |= {"podIP": address, "podIPs": [{"ip": address}]}
        with suppress(OSError, Refused):  # it may be gone by now
            self._api.patch(f"{_path(pod)}/status", {"status": status})


def _ready() -> dict[str, str]:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {"type": "Ready", "status": "True", "reason": "AgentReady", "lastHeartbeatTime": now}


def _path(pod: Mapping[str, Any]) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _kill(process: subprocess.Popen[bytes]) -> None:
    """All of a container, as the end of its group would."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
