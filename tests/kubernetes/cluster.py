"""A cluster for tests: the control plane, two nodes that are this machine, and our manifests."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from clusters.manager import Manager
from kubernetes.api import Document
from kubernetes.control_plane import ControlPlane, control_plane
from kubernetes.manifests import manifests
from kubernetes.node_agent import Node, NodeAgent

PROGRAMS = "PENSTOCK_KUBERNETES"
NAMESPACE = "penstock"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
# All executors of the trial fit on either of them.
NODES = (Node("one", "127.11.0", 3, 4096), Node("two", "127.12.0", 3, 4096))


def missing() -> str | None:
    """Why no cluster can be started here; None if one can."""
    if not os.environ.get(PROGRAMS):
        return f"{PROGRAMS} names no control plane; `make test-kubernetes` builds it, with Go"
    return next(
        (f"{one} is not on the path" for one in ("java", "openssl", "setpriv")
         if shutil.which(one) is None), None
    )  # fmt: skip


@dataclass(frozen=True)
class Cluster:
    """One that runs, and how the trial sees it."""

    plane: ControlPlane
    agent: NodeAgent
    manager: Manager

    def executors(self, phase: str) -> list[Document]:
        """Pods of executors in a phase that nobody deleted yet."""
        found = self.plane.admin.get(
            PODS, labelSelector="spark-role=executor", fieldSelector=f"status.phase={phase}"
        )
        return [one for one in found["items"] if "deletionTimestamp" not in one["metadata"]]

    def cordon(self, cordoned: bool) -> None:
        """Whether the scheduler may put pods on the nodes."""
        for node in NODES:
            self.plane.admin.patch(
                f"/api/v1/nodes/{node.name}", {"spec": {"unschedulable": cordoned}}
            )


@contextmanager
def kubernetes_cluster(folder: Path) -> Iterator[Cluster]:
    """Start it below a folder; everything ends with the block."""
    programs = Path(os.environ[PROGRAMS])
    with control_plane(programs, folder / "plane") as plane:
        for one in manifests("namespace", "service-accounts", "role"):
            one.create(plane.admin)
        driver = plane.service_account(NAMESPACE, "penstock-driver")
        token = folder / "token"
        token.touch(0o600)
        token.write_text(driver.token)
        settings = {
            "spark.master": plane.master,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.kubernetes.namespace": NAMESPACE,
            "spark.kubernetes.container.image": "this-machine",
            "spark.kubernetes.authenticate.caCertFile": str(plane.authority),
            "spark.kubernetes.authenticate.oauthTokenFile": str(token),
            "spark.kubernetes.authenticate.executor.serviceAccountName": "penstock-executor",
        }
        with NodeAgent(plane.admin, NODES, folder / "pods") as agent:
            manager = Manager(
                "kubernetes",
                settings,
                kill_node=lambda host: agent.lose(agent.node_at(host)),
                revive_node=lambda host: agent.find(agent.node_at(host)),
            )
            yield Cluster(plane, agent, manager)
