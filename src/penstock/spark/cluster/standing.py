"""A cluster that stays when the command that started it ends: `penstock cluster up/down/status`.

There is at most one for each user. What is known of it is in a state file that only its owner
can read; a state whose supervisor is gone (or whose pid now belongs to another process) counts
as no cluster at all.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.errors import Unavailable
from penstock.spark.cluster import embedded, launch
from penstock.spark.cluster.embedded import ClusterStatus
from penstock.spark.cluster.installed import find_java
from penstock.spark.cluster.supervisor import ClusterState, process_started

NONE_UP = "No cluster is up; start one with `penstock cluster up`."


@dataclass(frozen=True)
class ClusterChange:
    """What came of `up` or `down`; `changed` is False when there was nothing to do."""

    changed: bool
    detail: str
    status: ClusterStatus


@dataclass(frozen=True)
class UserCluster:
    """What a session on a cluster that is up needs; the settings hold its secret."""

    slots: int
    memory_mb: int
    directory: Path
    settings: Mapping[str, str] = field(repr=False)


def cluster_up(slots: int, memory_mb: int | None = None) -> ClusterChange:
    """Start the user's cluster, or say that it is up already."""
    slots, memory_mb = launch.check_size(slots, memory_mb)
    with _one_at_a_time():
        state = _live_state()
        if state is not None:
            status = embedded.ask_master(state)
            detail = f"A cluster is up already at {state.master_url} with {state.slots} slots."
            return ClusterChange(False, detail, status)
        state = _start(slots, memory_mb)
    status = embedded.ask_master(state)
    return ClusterChange(True, f"Up at {state.master_url} with {slots} slots.", status)


def cluster_down() -> ClusterChange:
    """End the user's cluster, or say that there is none."""
    with _one_at_a_time():
        state = _live_state()
        if state is None:
            return ClusterChange(False, NONE_UP, ClusterStatus(False, NONE_UP))
        _end(state.supervisor_pid)
        _forget(state)
    detail = f"The cluster at {state.master_url} is down."
    return ClusterChange(True, detail, ClusterStatus(False, detail))


def cluster_status() -> ClusterStatus:
    """What the user's cluster is doing."""
    state = _live_state()
    return ClusterStatus(False, NONE_UP) if state is None else embedded.ask_master(state)


def user_cluster() -> UserCluster:
    """The user's cluster as sessions need to know it; Unavailable when there is none."""
    state = _live_state()
    if state is None:
        raise Unavailable(NONE_UP)
    secret = launch.read_secret(Path(state.directory))
    settings = embedded.session_settings(state, secret)
    return UserCluster(state.slots, state.memory_mb, Path(state.directory), settings)


def cluster_settings() -> Mapping[str, str]:
    """Session settings for the user's cluster; Unavailable when there is none."""
    return user_cluster().settings


def state_directory() -> Path:
    """Where the state is kept: private, and gone with the login where the system provides that."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    base = runtime or os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    directory = Path(base) / "penstock"
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = directory.stat()
        if found.st_uid != os.getuid():
            raise Unavailable(f"{directory} belongs to another user; set XDG_STATE_HOME.")
        directory.chmod(0o700)
    except OSError as error:
        raise Unavailable(f"{directory} cannot be used: {error.strerror}.") from error
    return directory


def _start(slots: int, memory_mb: int) -> ClusterState:
    find_java()
    directory = launch.private_directory()
    state_path = _state_path()
    state_path.unlink(missing_ok=True)
    pid = 0
    try:
        launch.write_configuration(directory)
        command = launch.supervisor_command(directory, state_path, slots, memory_mb, detached=True)
        log_path = launch.supervisor_log(directory)
        with log_path.open("wb") as log:
            forked = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=log, env=launch.environment(directory), start_new_session=True, check=True,
            )  # fmt: skip
        pid = int(forked.stdout)
        return launch.await_state(
            state_path, launch.START_LIMIT_S, lambda: process_started(pid) is not None, log_path
        )
    except BaseException:
        _end(pid)
        state_path.unlink(missing_ok=True)
        shutil.rmtree(directory, ignore_errors=True)
        raise


def _end(pid: int) -> None:
    """End a supervisor, and with it its cluster."""
    started = process_started(pid) if pid else None
    for number in (signal.SIGTERM, signal.SIGKILL):  # on SIGKILL the kernel ends the cluster
        deadline = time.monotonic() + launch.STOP_LIMIT_S
        if started is None or process_started(pid) != started:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        while process_started(pid) == started and time.monotonic() < deadline:
            time.sleep(0.05)


def _live_state() -> ClusterState | None:
    state = launch.read_state(_state_path())
    if state is None:
        return None
    if not _is_live(state):
        _forget(state)
        return None
    return state


def _is_live(state: ClusterState) -> bool:
    return process_started(state.supervisor_pid) == state.supervisor_started


def _forget(state: ClusterState) -> None:
    _state_path().unlink(missing_ok=True)
    shutil.rmtree(state.directory, ignore_errors=True)


def _state_path() -> Path:
    return state_directory() / "cluster.json"


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Two commands at once must not start two clusters."""
    with (state_directory() / "cluster.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
