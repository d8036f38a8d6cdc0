"""The manifests of `deploy/kubernetes`, as documents that an API server can be sent."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kubernetes.api import Api, Document

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
# What the others are in comes first.
ORDER = ("namespace", "service-accounts", "role", "config-map", "volume-claim", "service", "driver")
MONITOR = "service-monitor"
PLURALS = {
    "Namespace": "namespaces", "ServiceAccount": "serviceaccounts", "Role": "roles",
    "RoleBinding": "rolebindings", "ConfigMap": "configmaps", "Service": "services",
    "PersistentVolumeClaim": "persistentvolumeclaims", "Deployment": "deployments",
    "ServiceMonitor": "servicemonitors",
}  # fmt: skip


@dataclass(frozen=True)
class Manifest:
    """One document of a file; the API server reads YAML itself."""

    text: str
    version: str
    kind: str

    @property
    def path(self) -> str:
        group = "/api/v1" if self.version == "v1" else f"/apis/{self.version}"
        inside = "" if self.kind == "Namespace" else "/namespaces/penstock"
        return f"{group}{inside}/{PLURALS[self.kind]}"

    def create(self, api: Api) -> Document:
        """Create it; a field that the server does not know is refused."""
        strict = {"fieldValidation": "Strict"}
        return api.ask("POST", self.path, self.text, "application/yaml", strict)


def manifests(*names: str) -> Iterator[Manifest]:
    """The documents of these files, without their ending."""
    for name in names:
        for text in (FOLDER / f"{name}.yaml").read_text().split("\n---\n"):
            version = re.search(r"^apiVersion: (\S+)$", text, re.MULTILINE)
            kind = re.search(r"^kind: (\S+)$", text, re.MULTILINE)
            assert version is not None, f"{name}.yaml has a document without apiVersion"
            assert kind is not None, f"{name}.yaml has a document without kind"
            yield Manifest(text, version[1], kind[1])
