"""How much of a CPU the tasks of components use on each node, and the tasks beside them.

Spark times the thread of a task on its CPU (`executorCpuTime`) and by the clock
(`executorRunTime`); their ratio is the share it used. A slot of a node stands for a CPU; what other
components do on that node, spread over its slots, is what runs beside a task (Kotto-Kombi 2018,
ch. 6 eq. 3). What a Python worker computes is not in the thread's time, so with Python functions
both shares are too low, and a task is taken to have its CPU rather to itself.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from penstock.model.observation import TaskCpu
from penstock.spark.handles import TaskColumns


@dataclass(frozen=True)
class NodeTime:
    """Seconds that the tasks of a batch took on one node: of the CPU, and of the clock."""

    cpu_s: float
    run_s: float

    @property
    def share(self) -> float:
        """Of a CPU, that a task used while it ran."""
        return min(1.0, self.cpu_s / self.run_s) if self.run_s > 0 else 0.0


def node_times(stages: Iterable[TaskColumns]) -> dict[str, NodeTime]:
    """The tasks of a batch that succeeded, by node."""
    found: dict[str, NodeTime] = {}
    for tasks in stages:
        done = tasks.status == "SUCCESS"
        for node in np.unique(tasks.executor[done]).tolist():
            here = done & (tasks.executor == node)
            before = found.get(node, NodeTime(0.0, 0.0))
            found[node] = NodeTime(
                before.cpu_s + float(tasks.cpu_time_ns[here].sum()) / 1e9,
                before.run_s + float(tasks.run_time_ms[here].sum()) / 1e3,
            )
    return found


def task_cpus(
    times: Mapping[str, Mapping[str, NodeTime]],
    busy: Mapping[str, float],
    slots: Mapping[str, int],
) -> dict[str, tuple[TaskCpu, ...]]:
    """For each component the CPU of a task on each of its nodes.

    `busy` is how many processors each component keeps busy on average.
    """
    used: dict[str, dict[str, float]] = {}  # CPUs, by component and node
    for component, nodes in times.items():
        whole_s = sum(time.run_s for time in nodes.values())
        used[component] = {
            node: busy.get(component, 0.0) * time.run_s / whole_s * time.share
            for node, time in nodes.items()
            if whole_s > 0
        }
    found = {}
    for component, nodes in times.items():
        tasks = []
        for node, time in nodes.items():
            others = [used[other].get(node, 0.0) for other in used if other != component]
            beside = min(1.0, sum(others) / max(1, slots.get(node, 1)))
            tasks.append(TaskCpu(time.share, (beside,) if beside > 0 else ()))
        found[component] = tuple(tasks)
    return found
