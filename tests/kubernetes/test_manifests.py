"""The manifests of `deploy/kubernetes` on a real API server."""

import tomllib
from dataclasses import replace

import pytest

from kubernetes.api import Document, Refused
from kubernetes.cluster import NAMESPACE, PODS, Cluster
from kubernetes.manifests import MONITOR, ORDER, manifests
from kubernetes.waiting import until
from penstock.config import Settings

DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="module")
def created(cluster: Cluster) -> dict[str, Document]:
    """All of them; the cluster made the first three files' itself, in the same way."""
    made = [one.create(cluster.plane.admin) for one in manifests(*ORDER[3:])]
    return {one["kind"]: one for one in made}


def test_a_driver_is_started(cluster: Cluster, created: dict[str, Document]) -> None:
    admin = cluster.plane.admin

    def drivers() -> list[Document]:
        found: list[Document] = admin.get(PODS, labelSelector="app=penstock-driver")["items"]
        return found

    until("its pod", drivers)  # no pod comes where its account, its quota or its form is wrong
    (pod,) = drivers()
    assert pod["spec"]["serviceAccountName"] == "penstock-driver"
    assert created["Deployment"]["spec"]["strategy"]["type"] == "Recreate"
    admin.delete(f"{DEPLOYMENTS}/penstock-driver", {"propagationPolicy": "Background"})
    until("its end", lambda: not drivers())


def test_the_options_are_options(created: dict[str, Document]) -> None:
    data = created["ConfigMap"]["data"]
    given = tomllib.loads(data["penstock.toml"])["penstock"]
    assert Settings(**{key.replace("-", "_"): value for key, value in given.items()})
    compile(data["metrics.py"], "metrics.py", "exec")


def test_the_account_may_do_no_more(cluster: Cluster) -> None:
    driver = cluster.plane.service_account(NAMESPACE, "penstock-driver")
    executor = cluster.plane.service_account(NAMESPACE, "penstock-executor")
    assert driver.get(PODS)["kind"] == "PodList"
    for who, path in (
        (driver, f"/api/v1/namespaces/{NAMESPACE}/secrets"),
        (driver, "/api/v1/namespaces/kube-system/pods"),
        (driver, "/api/v1/nodes"),
        (executor, PODS),
    ):
        with pytest.raises(Refused) as refused:
            who.get(path)
        assert refused.value.status == 403


def test_nobody_is_anonymous(cluster: Cluster) -> None:
    with pytest.raises(Refused) as refused:
        replace(cluster.plane.admin, token="none").get(PODS)
    assert refused.value.status == 401


def test_the_service_monitor_has_the_form_of_one(cluster: Cluster) -> None:
    """Its kind is the Prometheus operator's; here it has only the fields that are used."""
    text, texts = {"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}
    endpoint = {"type": "object", "properties": {"port": text, "path": text, "interval": text}}
    selector = {"type": "object", "properties": {"matchLabels": texts}}
    spec = {"type": "object", "properties": {
        "selector": selector, "endpoints": {"type": "array", "items": endpoint},
    }}  # fmt: skip
    schema = {"type": "object", "properties": {"spec": spec}}
    names = {"plural": "servicemonitors", "singular": "servicemonitor", "kind": "ServiceMonitor"}
    version = {
        "name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema},
    }  # fmt: skip
    cluster.plane.admin.post(DEFINITIONS, {
        "metadata": {"name": "servicemonitors.monitoring.coreos.com"},
        "spec": {"group": "monitoring.coreos.com", "scope": "Namespaced", "names": names,
                 "versions": [version]},
    })  # fmt: skip
    (monitor,) = manifests(MONITOR)

    def accepted() -> bool:
        try:
            return bool(monitor.create(cluster.plane.admin))
        except Refused as answer:
            if answer.status != 404:  # not served yet
                raise
            return False

    until("the monitor", accepted)
