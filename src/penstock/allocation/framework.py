"""The adaptation framework: allocate in thought, scale, allocate again.

Madsen et al. 2017, Algorithm 1.

Nodes marked for removal in earlier rounds that are empty are given back. A placement is planned;
the scaling policy sees what it would achieve and may add or mark nodes, in which case it is
planned anew for the changed set of nodes. What is returned is data: someone else carries it out,
waiting for new nodes before moving key groups to them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from penstock.allocation.problem import NOWHERE, AllocationProblem, Ints, Resource
from penstock.allocation.solver import Allocation


@dataclass(frozen=True)
class NewNode:
    """A node the scaling policy asks for; `limits` are its further resources by position."""

    name: str
    capacity: float = 1.0
    limits: tuple[float, ...] = ()


@dataclass(frozen=True)
class ScalingChange:
    """Nodes to add and nodes to mark for removal."""

    add: tuple[NewNode, ...] = ()
    drain: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.add or self.drain)


@dataclass(frozen=True)
class Cluster:
    """Nodes by name, in the order in which the problem numbers them."""

    nodes: tuple[str, ...]
    problem: AllocationProblem


@dataclass(frozen=True)
class Adaptation:
    """One round: what to give back, what to add and mark, and the plan for what then exists."""

    terminate: tuple[str, ...]
    change: ScalingChange
    cluster: Cluster  # after termination and scaling; its homes are the present ones
    plan: Allocation


Allocate = Callable[[AllocationProblem], Allocation]
Scale = Callable[[Cluster, Allocation], ScalingChange]


def adapt(cluster: Cluster, allocate: Allocate, scale: Scale) -> Adaptation:
    """One round of Algorithm 1."""
    empty = (
        np.bincount(
            cluster.problem.home[cluster.problem.home != NOWHERE], minlength=len(cluster.nodes)
        )
        == 0
    )
    done = cluster.problem.draining & empty
    if done.all():
        done[:] = False  # something must remain to plan for
    terminate = tuple(name for name, gone in zip(cluster.nodes, done, strict=True) if gone)
    cluster = _without(cluster, done)
    plan = allocate(cluster.problem)
    change = scale(cluster, plan)
    if change:
        cluster = scaled(cluster, change)
        plan = allocate(cluster.problem)
    return Adaptation(terminate, change, cluster, plan)


def scaled(cluster: Cluster, change: ScalingChange) -> Cluster:
    """The cluster with nodes added and marked."""
    problem = cluster.problem
    newly_draining = np.array([name in change.drain for name in cluster.nodes], dtype=bool)
    draining = np.concatenate(
        [problem.draining | newly_draining, np.zeros(len(change.add), dtype=bool)]
    )
    capacity = np.concatenate([problem.capacity, [node.capacity for node in change.add]])
    resources = tuple(
        Resource(
            resource.name, resource.use,
            np.concatenate([resource.limit, [_limit(node, index) for node in change.add]]),
        )
        for index, resource in enumerate(problem.resources)
    )  # fmt: skip
    names = cluster.nodes + tuple(node.name for node in change.add)
    other_load = np.concatenate([problem.other_load, np.zeros(len(change.add))])
    return Cluster(
        names,
        replace(
            problem,
            capacity=capacity,
            draining=draining,
            resources=resources,
            other_load=other_load,
        ),
    )


def _limit(node: NewNode, index: int) -> float:
    return node.limits[index] if index < len(node.limits) else float("inf")


def _without(cluster: Cluster, gone: np.ndarray) -> Cluster:
    problem, kept = cluster.problem, ~gone
    number = np.cumsum(kept) - 1

    def renumber(nodes: Ints) -> Ints:
        return np.where(nodes == NOWHERE, NOWHERE, number[nodes])

    return Cluster(
        tuple(name for name, stays in zip(cluster.nodes, kept, strict=True) if stays),
        replace(
            problem,
            home=renumber(problem.home),
            pinned=renumber(problem.pinned),
            capacity=problem.capacity[kept],
            draining=problem.draining[kept],
            other_load=problem.other_load[kept],
            resources=tuple(Resource(r.name, r.use, r.limit[kept]) for r in problem.resources),
        ),
    )
