"""A standalone Flink cluster on loopback, from the files of the apache-flink package.

Its adaptive scheduler takes the parallelism of a job by REST, or in reactive mode uses whatever
slots there are. Flink's own delays between two changes are set to what our loop has.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LIMIT_S = 180.0
SLOTS = 2  # of a task manager, as of an executor
CHECKPOINT_S = 1.0
COOLDOWN_S = 5.0


@dataclass(frozen=True)
class Vertex:
    """A chain of operators of a job, since its newest start."""

    id: str
    name: str
    parallelism: int
    busy_s: float


@dataclass
class FlinkCluster:
    """A job manager and its task managers; `reactive` runs one job on all of their slots."""

    python: str  # of an environment with apache-flink
    folder: Path
    reactive: bool = False
    managers: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.home = self.folder / "flink"
        self.rest = _free_port()
        package = _package(self.python)
        shutil.copytree(package / "bin", self.home / "bin")
        (self.home / "log").mkdir()
        for name in ("lib", "opt"):
            (self.home / name).mkdir()
            for jar in (package / name).glob("*.jar"):
                (self.home / name / jar.name).symlink_to(jar)
        # An application cluster needs what `flink run` would send along with a Python job.
        for jar in (package / "opt").glob("flink-python*.jar"):
            (self.home / "lib" / jar.name).symlink_to(jar)
        self._configure(package)
        self._job_manager: subprocess.Popen[bytes] | None = None

    def start(self, script: Path, *arguments: str) -> str:
        """The job manager, one task manager, and the job, whose id this is."""
        if self.reactive:
            self._job_manager = self._process(
                "standalone-job.sh", "start-foreground",
                "--job-classname", "org.apache.flink.client.python.PythonDriver",
                "-pyclientexec", self.python, "-py", str(script), *arguments,
            )  # fmt: skip
        else:
            self._job_manager = self._process("jobmanager.sh", "start-foreground")
        self.add_manager()
        self._until(lambda: self.get("/overview")["taskmanagers"] >= 1, "a task manager")
        if not self.reactive:
            command = [self.home / "bin/flink", "run", "-d", "-pyclientexec", self.python]
            done = subprocess.run(
                [*command, "-py", script, *arguments],
                env=self._environment, capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode:
                raise RuntimeError(
                    f"flink run failed: {done.stderr[-2000:] or done.stdout[-2000:]}"
                )
        self._until(lambda: bool(self.get("/jobs")["jobs"]), "a job")
        job = str(self.get("/jobs")["jobs"][0]["id"])
        self._until(lambda: self.get(f"/jobs/{job}")["state"] == "RUNNING", "a running job")
        return job

    def add_manager(self) -> None:
        """One more task manager."""
        self.managers.append(self._process("taskmanager.sh", "start-foreground"))

    def remove_manager(self) -> None:
        """End the newest task manager; its job goes on from the last checkpoint."""
        _end(self.managers.pop())

    def vertices(self, job: str) -> list[Vertex]:
        """What its operators did; none while it starts again."""
        found = []
        for one in self.get(f"/jobs/{job}")["vertices"]:
            busy_ms = float(one["metrics"].get("accumulated-busy-time") or 0.0)
            found.append(Vertex(one["id"], one["name"], one["parallelism"], busy_ms / 1e3))
        return found

    def resize(self, job: str, parallelism: int) -> None:
        """Let every operator have so many slots, which they share."""
        wanted = {"parallelism": {"lowerBound": 1, "upperBound": parallelism}}
        body = json.dumps({one.id: wanted for one in self.vertices(job)}).encode()
        self._ask("PUT", f"/jobs/{job}/resource-requirements", body)

    def get(self, path: str) -> Any:
        """What its REST interface answers."""
        return json.loads(self._ask("GET", path) or b"{}")

    def stop(self) -> None:
        """End all of its processes."""
        for process in (*self.managers, self._job_manager):
            if process is not None:
                _end(process)

    def _configure(self, package: Path) -> None:
        settings: dict[str, Any] = {
            "jobmanager.rpc.address": "127.0.0.1", "jobmanager.rpc.port": _free_port(),
            "jobmanager.bind-host": "127.0.0.1", "taskmanager.bind-host": "127.0.0.1",
            "taskmanager.host": "127.0.0.1", "rest.address": "127.0.0.1",
            "rest.bind-address": "127.0.0.1", "rest.port": self.rest,
            "jobmanager.memory.process.size": "1g", "taskmanager.memory.process.size": "1g",
            "taskmanager.numberOfTaskSlots": SLOTS, "parallelism.default": 1,
            "jobmanager.scheduler": "adaptive",
            "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling": f"{COOLDOWN_S:g} s",
            "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout": "1 s",
            "jobmanager.adaptive-scheduler.rescale-trigger.max-delay": "1 s",
            "execution.checkpointing.interval": f"{CHECKPOINT_S:g} s",
            "execution.checkpointing.dir": (self.folder / "checkpoints").as_uri(),
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": 1_000_000,
            "restart-strategy.fixed-delay.delay": "100 ms",
            # In the task manager's own process: a Python process for each task would have to start
            # anew at every change.
            "python.executable": self.python, "python.execution-mode": "thread",
        }  # fmt: skip
        if self.reactive:
            settings |= {"scheduler-mode": "reactive"}
        (self.home / "conf").mkdir()
        for file in (package / "conf").glob("log*"):
            shutil.copy(file, self.home / "conf")
        shipped = (package / "conf" / "config.yaml").read_text(encoding="utf-8")
        settings["env.java.opts.all"] = re.findall(r"^ +all: (--add-.*)$", shipped, re.M)[0]
        lines = [f"{key}: {value}" for key, value in settings.items()]
        (self.home / "conf" / "config.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")

    @property
    def _environment(self) -> dict[str, str]:
        path = f"{Path(self.python).parent}:{os.environ['PATH']}"
        return {**os.environ, "FLINK_CONF_DIR": str(self.home / "conf"), "PATH": path}

    def _process(self, script: str, *arguments: str) -> "subprocess.Popen[bytes]":
        number = len(list(self.folder.glob("log-*")))
        with (self.folder / f"log-{number}-{script}").open("wb") as log:
            return subprocess.Popen(
                [self.home / "bin" / script, *arguments],
                env=self._environment, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def _ask(self, method: str, path: str, body: bytes | None = None) -> bytes:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.rest}{path}", data=body, method=method,
            headers={"Content-Type": "application/json"},
        )  # fmt: skip
        with urllib.request.urlopen(request, timeout=30) as answer:
            return bytes(answer.read())

    def _until(self, there: Any, what: str) -> None:
        deadline = time.monotonic() + LIMIT_S
        while True:
            try:
                if there():
                    return
            except (urllib.error.URLError, KeyError, ConnectionError):
                pass
            ended = self._job_manager is not None and self._job_manager.poll() is not None
            if ended or time.monotonic() > deadline:
                logs = "".join(f.read_text()[-1500:] for f in sorted(self.folder.glob("log-*")))
                raise RuntimeError(f"Flink has not come to {what}: {logs}")
            time.sleep(0.2)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """It and what it started, which is a group of its own."""
    try:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    except ProcessLookupError:
        process.wait()


def _package(python: str) -> Path:
    code = "import pathlib, pyflink; print(pathlib.Path(pyflink.__file__).parent)"
    found = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return Path(found.stdout.strip())


def _free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])
