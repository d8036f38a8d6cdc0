"""Kubernetes' own control plane on loopback: etcd, API server, scheduler and controllers.

Tokens are of a file and of service accounts, nobody is anonymous, and roles decide what each may
do. Only what a kubelet would do is played, by `node_agent.py`.
"""

import json
import os
import secrets
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from brokers.free_port import free_port
from kubernetes.api import Api, Refused

START_LIMIT_S = 180.0
END_LIMIT_S = 10.0
# A node that says nothing for so long is not ready, and its pods are then deleted.
SILENCE_S = 20
EVICTED_AFTER_S = 3
CONTROLLERS = (
    "serviceaccount-controller", "resourcequota-controller", "node-lifecycle-controller",
    "taint-eviction-controller", "pod-garbage-collector-controller",
    "garbage-collector-controller", "namespace-controller", "deployment-controller",
    "replicaset-controller",
)  # fmt: skip


@dataclass(frozen=True)
class ControlPlane:
    """A control plane that runs, and its administrator."""

    port: int
    authority: Path  # that signed its certificate
    admin: Api

    @property
    def master(self) -> str:
        return f"k8s://https://127.0.0.1:{self.port}"

    def service_account(self, namespace: str, name: str) -> Api:
        """Who asks with a token of a service account, as a pod of it would."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        made = self.admin.post(path, {"spec": {"expirationSeconds": 7200}})
        return Api(self.port, self.authority, made["status"]["token"])


@contextmanager
def control_plane(programs: Path, folder: Path) -> Iterator[ControlPlane]:
    """Start all of it below a folder, which also gets the logs; it ends with the block."""
    folder.mkdir(parents=True, exist_ok=True)
    client, peer, port = free_port(), free_port(), free_port()
    token = secrets.token_hex(16)
    _write_private(folder / "tokens.csv", f"{token},admin,admin,system:masters\n")
    key = folder / "accounts.key"
    _make_key(key)
    with ExitStack() as running:
        etcd = [
            f"--data-dir={folder / 'etcd'}", "--unsafe-no-fsync", "--log-level=warn",
            f"--listen-client-urls=http://127.0.0.1:{client}",
            f"--advertise-client-urls=http://127.0.0.1:{client}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-cluster=default=http://127.0.0.1:{peer}",
        ]  # fmt: skip
        running.enter_context(_program(programs / "etcd", etcd, folder))
        server = [
            f"--etcd-servers=http://127.0.0.1:{client}", f"--secure-port={port}",
            "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none", f"--cert-dir={folder / 'certificates'}",
            f"--token-auth-file={folder / 'tokens.csv'}", "--anonymous-auth=false",
            "--authorization-mode=Node,RBAC", "--service-cluster-ip-range=10.96.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}",
            f"--default-not-ready-toleration-seconds={EVICTED_AFTER_S}",
            f"--default-unreachable-toleration-seconds={EVICTED_AFTER_S}",
        ]  # fmt: skip
        process = running.enter_context(_program(programs / "kube-apiserver", server, folder))
        authority = folder / "certificates" / "apiserver.crt"
        plane = ControlPlane(port, authority, Api(port, authority, token))
        _await_ready(plane, process, folder / "kube-apiserver.log")
        config = folder / "admin.json"
        _write_private(config, json.dumps(_kubeconfig(plane, token)))
        alone = [f"--kubeconfig={config}", "--leader-elect=false", "--secure-port=0"]
        running.enter_context(_program(programs / "kube-scheduler", alone, folder))
        controllers = [
            *alone, f"--controllers={','.join(CONTROLLERS)}", "--node-monitor-period=2s",
            f"--node-monitor-grace-period={SILENCE_S}s", "--node-eviction-rate=1",
        ]  # fmt: skip
        running.enter_context(_program(programs / "kube-controller-manager", controllers, folder))
        yield plane


@contextmanager
def _program(
    program: Path, arguments: Sequence[str], folder: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """A program that writes its log below the folder, and is ended with the block."""
    with (folder / f"{program.name}.log").open("wb") as log:
        command = ["setpriv", "--pdeathsig", "KILL", str(program), *arguments]
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(END_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await_ready(plane: ControlPlane, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        with suppress(OSError, Refused):
            plane.admin.get("/readyz")
            # Which roles there are is written a moment later.
            plane.admin.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node")
            return
        if server.poll() is not None or time.monotonic() > deadline:
            last = "\n".join(log.read_text(errors="replace").splitlines()[-5:])
            raise RuntimeError(f"the API server did not get ready; its last lines:\n{last}")
        time.sleep(0.2)


def _kubeconfig(plane: ControlPlane, token: str) -> dict[str, object]:
    server = {
        "server": f"https://127.0.0.1:{plane.port}", "certificate-authority": str(plane.authority),
    }  # fmt: skip
    return {
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        "clusters": [{"name": "here", "cluster": server}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "admin"}}],
    }  # fmt: skip


def _make_key(file: Path) -> None:
    """The key that signs tokens of service accounts."""
    command = ["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout"]
    made = subprocess.run(command, capture_output=True, text=True, check=True)
    _write_private(file, made.stdout)


def _write_private(file: Path, text: str) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
        opened.write(text)
