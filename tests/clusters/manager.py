"""What the trial has to know of a cluster, and how it kills what runs there."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

EXECUTOR = "ExecutorBackend"  # every manager's executors are of a class whose name ends so


@dataclass(frozen=True)
class Manager:
    """A cluster that runs, as a user's session is told of it.

    `settings` go into the spark-defaults.conf of every driver and must hold `spark.master`;
    `environment` is added to that of its process. `kill_node` ends, by kill -9, what starts
    executors on a host (a node manager, a worker), and waits for nothing; `revive_node` brings it
    back. Executors have to be processes of this machine.
    """

    name: str
    settings: Mapping[str, str]
    kill_node: Callable[[str], None]
    revive_node: Callable[[str], None]
    environment: Mapping[str, str] = field(default_factory=dict)
    inside: tuple[str, ...] = ()  # words before the driver's command, such as a namespace's


def executor_processes(application: str) -> dict[str, int]:
    """The processes of an application's executors on this machine, by the executors' ids."""
    return {
        words[words.index("--executor-id") + 1]: pid
        for pid, words in _commands()
        if application in words and "--executor-id" in words
        if any(word.endswith(EXECUTOR) for word in words)
    }


def kill_executor(application: str, executor: str) -> None:
    """kill -9 the process of one executor."""
    os.kill(executor_processes(application)[executor], signal.SIGKILL)


def _commands() -> Iterator[tuple[int, list[str]]]:
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield int(entry.parent.name), entry.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
