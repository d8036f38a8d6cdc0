"""What a pod would run in its container, as a process of this machine.

The files of PySpark are the image. Volumes are folders below the pod's own, and paths in them are
replaced in its environment and arguments.
"""

import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark

SPARK_HOME = Path(pyspark.__file__).parent
BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
ConfigMap = Callable[[str], Mapping[str, str]]


@dataclass(frozen=True)
class Container:
    """The one container of a pod, ready to be started here."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path

    def start(self) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("wb") as log:
            return subprocess.Popen(
                self.command, cwd=self.folder, env=dict(self.environment), stdout=log, stderr=log,
                stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip


def container_of(pod: Mapping[str, Any], address: str, folder: Path, maps: ConfigMap) -> Container:
    """The container of a pod with this address, its volumes made below the folder."""
    (described,) = pod["spec"]["containers"]
    folder.mkdir(parents=True)
    mounted = _mounted(pod, described, folder, maps)

    def here(text: str) -> str:
        for path, there in mounted.items():
            text = text.replace(path, str(there))
        return text

    fields = {
        "status.podIP": address, "metadata.name": pod["metadata"]["name"],
        "metadata.namespace": pod["metadata"]["namespace"],
    }  # fmt: skip
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "SPARK_HOME": str(SPARK_HOME)}
    for one in described.get("env", ()):
        value = one.get("value", "")
        if source := one.get("valueFrom"):
            value = fields[source["fieldRef"]["fieldPath"]]
        environment[one["name"]] = here(value)
    given = [here(one) for one in (*described.get("command", ()), *described.get("args", ()))]
    command = _executor(environment) if given == ["executor"] else tuple(given)
    return Container(command, environment, folder)


def _mounted(
    pod: Mapping[str, Any], described: Mapping[str, Any], folder: Path, maps: ConfigMap
) -> dict[str, Path]:
    """The folder that stands for each path of a volume in the container."""
    volumes = {one["name"]: one for one in pod["spec"].get("volumes", ())}
    mounted = {}
    for mount in described.get("volumeMounts", ()):
        volume, place = volumes[mount["name"]], folder / mount["name"]
        place.mkdir(exist_ok=True)
        if wanted := volume.get("configMap"):
            data = maps(wanted["name"])
            items = wanted.get("items") or [{"key": one, "path": one} for one in data]
            for item in items:
                (place / item["path"]).write_text(data[item["key"]])
        mounted[mount["mountPath"]] = place
    return mounted


def _executor(environment: Mapping[str, str]) -> tuple[str, ...]:
    """What the entry point of Spark's images makes of the argument `executor`."""
    numbered = [name for name in environment if name.startswith("SPARK_JAVA_OPT_")]
    numbered.sort(key=lambda name: int(name.rpartition("_")[2]))
    memory = environment["SPARK_EXECUTOR_MEMORY"]
    classes = [environment.get("SPARK_CONF_DIR", ""), environment.get("SPARK_CLASSPATH", "")]
    return (
        "java", *(environment[name] for name in numbered), f"-Xms{memory}", f"-Xmx{memory}",
        "-cp", ":".join([*filter(None, classes), f"{SPARK_HOME}/jars/*"]), BACKEND,
        "--driver-url", environment["SPARK_DRIVER_URL"],
        "--executor-id", environment["SPARK_EXECUTOR_ID"],
        "--cores", environment["SPARK_EXECUTOR_CORES"],
        "--app-id", environment["SPARK_APPLICATION_ID"],
        "--hostname", environment["SPARK_EXECUTOR_POD_IP"],
        "--resourceProfileId", environment["SPARK_RESOURCE_PROFILE_ID"],
        "--podName", environment["SPARK_EXECUTOR_POD_NAME"],
    )  # fmt: skip
