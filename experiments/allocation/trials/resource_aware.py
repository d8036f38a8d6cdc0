"""The resource-aware scheduler of Kotto-Kombi 2018, ch. 4 s. 1.3.3, and its two relatives.

Tasks (here key groups) with reservations of processor and memory are placed one after another,
neighbours in the graph of traffic close after each other, each on the node that is best by the
objective among those whose free reservations suffice:

    equality   least standard deviation of processor usage over the nodes (eq. 1)
    traffic    least traffic between nodes (eq. 2)
    resource   least traffic, then the node whose free processor and memory fit most tightly

Reference: Xu et al. 2014 and Peng et al. 2015 as described there.
"""

from dataclasses import dataclass
from typing import Literal

import networkx as nx
import numpy as np

from penstock.allocation.problem import NOWHERE, TOLERANCE, Bools, Floats, Ints, summed_by
from penstock.allocation.traffic import Traffic
from penstock.model.decision import Decision

Objective = Literal["equality", "traffic", "resource"]


@dataclass(frozen=True)
class Reservations:
    """What tasks ask for and nodes have, in the same units."""

    task_cpu: Floats
    task_memory: Floats
    node_cpu: Floats
    node_memory: Floats


def usage_deviation(reservations: Reservations, placement: Ints) -> float:
    """f_equality: standard deviation of the nodes' processor usage (eq. 1)."""
    return float((_used(reservations, placement, "cpu") / reservations.node_cpu).std())


def network_traffic(traffic: Traffic, placement: Ints) -> float:
    """f_traffic: volume of the streams that cross nodes (eq. 2)."""
    return float(traffic.rate[placement[traffic.source] != placement[traffic.target]].sum())


def schedule(reservations: Reservations, traffic: Traffic, objective: Objective) -> Decision[Ints]:
    """A node for every task; the answer is infeasible when reservations had to be exceeded."""
    tasks, nodes = len(reservations.task_cpu), len(reservations.node_cpu)
    placement = np.full(tasks, NOWHERE)
    free_cpu, free_memory = reservations.node_cpu.copy(), reservations.node_memory.copy()
    weight = _symmetric(traffic, tasks)
    crowded = 0
    for task in _order(traffic, reservations):
        cpu, memory = reservations.task_cpu[task], reservations.task_memory[task]
        fits: Bools = (free_cpu >= cpu - TOLERANCE) & (free_memory >= memory - TOLERANCE)
        if not fits.any():
            crowded += 1
            fits = np.ones(nodes, dtype=bool)
        saved = np.zeros(nodes)
        for other, rate in weight[task].items():
            if placement[other] != NOWHERE:
                saved[placement[other]] += rate
        keys = _preference(objective, saved, free_cpu, free_memory, reservations, cpu, memory)
        node = int(np.lexsort((*keys, ~fits))[0])
        placement[task] = node
        free_cpu[node] -= cpu
        free_memory[node] -= memory
    infeasible = None
    if crowded:
        infeasible = f"{crowded} of {tasks} tasks find no node with enough processor and memory."
    reason = (
        f"{objective}: traffic between nodes {network_traffic(traffic, placement):.6g}, "
        f"deviation of processor usage {usage_deviation(reservations, placement):.4g}"
    )
    return Decision(placement, (reason,), infeasible)


def _preference(
    objective: Objective, saved: Floats, free_cpu: Floats, free_memory: Floats,
    reservations: Reservations, cpu: float, memory: float,
) -> tuple[Floats, ...]:  # fmt: skip
    """Sort keys over the nodes for numpy's lexsort: the last one counts most."""
    usage = 1.0 - (free_cpu - cpu) / reservations.node_cpu
    if objective == "equality":
        return (-saved, usage)
    if objective == "traffic":
        return (usage, -saved)
    tightness = np.hypot(
        (free_cpu - cpu) / reservations.node_cpu, (free_memory - memory) / reservations.node_memory
    )
    return (tightness, -saved)


def _order(traffic: Traffic, reservations: Reservations) -> list[int]:
    """Breadth first from the task with most traffic, heavy neighbours first."""
    tasks = len(reservations.task_cpu)
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(tasks))
    weight = _symmetric(traffic, tasks)
    total = [sum(neighbours.values()) for neighbours in weight]
    for task, neighbours in enumerate(weight):
        graph.add_edges_from((task, other) for other in neighbours)
    order: list[int] = []
    seen: set[int] = set()
    for start in sorted(range(tasks), key=lambda task: (-total[task], task)):
        if start in seen:
            continue
        reached = nx.bfs_tree(
            graph, start, sort_neighbors=lambda found: sorted(found, key=lambda t: (-total[t], t))
        )
        fresh = [task for task in reached if task not in seen]
        seen.update(fresh)
        order += fresh
    return order


def _symmetric(traffic: Traffic, tasks: int) -> list[dict[int, float]]:
    weight: list[dict[int, float]] = [{} for _ in range(tasks)]
    columns = (traffic.source.tolist(), traffic.target.tolist(), traffic.rate.tolist())
    for source, target, rate in zip(*columns, strict=True):
        if source != target and rate > 0:
            weight[source][target] = weight[source].get(target, 0.0) + rate
            weight[target][source] = weight[target].get(source, 0.0) + rate
    return weight


def _used(reservations: Reservations, placement: Ints, what: Literal["cpu", "memory"]) -> Floats:
    column = reservations.task_cpu if what == "cpu" else reservations.task_memory
    return summed_by(placement, column, len(reservations.node_cpu))
