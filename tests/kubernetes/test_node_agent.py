"""What the agent of these tests plays is what a kubelet would do."""

import pytest

from kubernetes.api import Document, Refused
from kubernetes.cluster import PODS, Cluster
from kubernetes.waiting import until


def start(cluster: Cluster, name: str, script: str, **spec: object) -> None:
    container = {"name": "main", "image": "this-machine", "command": ["sh", "-c", script]}
    cluster.plane.admin.post(PODS, {
        "metadata": {"name": name},
        "spec": {"containers": [container], "restartPolicy": "Never",
                 "serviceAccountName": "penstock-executor", **spec},
    })  # fmt: skip


def look(cluster: Cluster, name: str) -> Document | None:
    try:
        return cluster.plane.admin.get(f"{PODS}/{name}")
    except Refused as answer:
        if answer.status != 404:
            raise
        return None


def phase(cluster: Cluster, name: str) -> str:
    pod = look(cluster, name)
    return str(pod["status"]["phase"]) if pod else "gone"


@pytest.mark.parametrize(("code", "ended"), [(0, "Succeeded"), (3, "Failed")])
def test_a_pod_ends_as_its_process_does(cluster: Cluster, code: int, ended: str) -> None:
    name = f"ends-{code}"
    start(cluster, name, f"exit {code}")
    until(ended, lambda: phase(cluster, name) == ended)
    pod = look(cluster, name)
    assert pod is not None
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == code
    cluster.plane.admin.delete(f"{PODS}/{name}")
    until("its end", lambda: look(cluster, name) is None)


@pytest.mark.parametrize(("name", "script"), [
    ("obeys", "exec sleep 1000"),
    ("ignores", "trap '' TERM; while :; do sleep 0.1; done"),
])  # fmt: skip
def test_a_deleted_pod_is_ended(cluster: Cluster, name: str, script: str) -> None:
    start(cluster, name, script)
    until("its start", lambda: phase(cluster, name) == "Running")
    cluster.plane.admin.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 2})
    until("its end", lambda: look(cluster, name) is None)


def test_what_does_not_fit_waits(cluster: Cluster) -> None:
    start(cluster, "large", "exit 0", nodeSelector={"kubernetes.io/hostname": "nowhere"})

    def reasons() -> list[str]:
        pod = look(cluster, "large")
        assert pod is not None
        return [one.get("reason", "") for one in pod["status"].get("conditions", ())]

    until("the word of the scheduler", lambda: "Unschedulable" in reasons())
    cluster.plane.admin.delete(f"{PODS}/large")
    until("its end", lambda: look(cluster, "large") is None)


def test_pods_of_a_lost_node_are_given_up(cluster: Cluster) -> None:
    start(cluster, "lost", "exec sleep 1000", nodeSelector={"kubernetes.io/hostname": "two"})
    until("its start", lambda: phase(cluster, "lost") == "Running")
    cluster.agent.lose("two")
    assert phase(cluster, "lost") == "Running", "nobody knows yet"
    until("its deletion", lambda: "deletionTimestamp" in (look(cluster, "lost") or {})["metadata"])
    cluster.agent.find("two")
    until("its end", lambda: look(cluster, "lost") is None)
    start(cluster, "found", "exit 0", nodeSelector={"kubernetes.io/hostname": "two"})
    until("its end", lambda: phase(cluster, "found") == "Succeeded")
    cluster.plane.admin.delete(f"{PODS}/found")
