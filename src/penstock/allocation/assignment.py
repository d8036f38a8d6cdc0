"""What is assigned by reservations, and how placements are compared (see resource_aware.py)."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeVar

import numpy as np

from penstock.allocation.problem import (
    NOWHERE,
    TOLERANCE,
    AllocationProblem,
    Floats,
    Ints,
    Resource,
    summed_by,
)
from penstock.allocation.traffic import Traffic

Objective = Literal["equality", "traffic", "resource"]
OBJECTIVES: tuple[Objective, ...] = ("equality", "traffic", "resource")
CPU = "cpu"
Rank = tuple[float, float, float]
Level = TypeVar("Level", float, Floats)


def with_cpu(problem: AllocationProblem, max_load: float) -> AllocationProblem:
    """The problem with a reservation of processor: its load, where the user declared none."""
    if any(resource.name == CPU for resource in problem.resources):
        return problem
    cpu = Resource(CPU, problem.load, problem.capacity * max_load)
    return replace(problem, resources=(cpu, *problem.resources))


@dataclass(frozen=True)
class Assignment:
    """What is assigned, and how placements are compared. The problem must reserve `CPU`."""

    problem: AllocationProblem
    traffic: Traffic
    objective: Objective

    @cached_property
    def cpu(self) -> Resource:
        """The reservation that usage is counted in."""
        return next(one for one in self.problem.resources if one.name == CPU)

    @cached_property
    def whole(self) -> Floats:
        """What each node has of processors, above 0."""
        return np.maximum(self.cpu.limit, TOLERANCE)

    @cached_property
    def weight(self) -> Floats:
        """Traffic between each two key groups, as a share of all."""
        found = np.zeros((len(self.problem.load), len(self.problem.load)))
        np.add.at(found, (self.traffic.source, self.traffic.target), self.traffic.rate)
        found = found + found.T
        np.fill_diagonal(found, 0.0)
        return found / max(float(self.traffic.rate.sum()), TOLERANCE)

    def usage(self, placement: Ints) -> Floats:
        """The share of its processors that each node has reserved."""
        placed = placement != NOWHERE
        used = summed_by(placement[placed], self.cpu.use[placed], len(self.problem.capacity))
        return used / self.whole

    def rank(self, placement: Ints) -> Rank:
        """What is compared, smallest best: what is exceeded, then the objective's two levels."""
        variance = float(self.usage(placement)[self.problem.open].var())
        crossing = placement[:, None] != placement[None, :]
        traffic = float(self.weight[crossing].sum()) / 2
        return (self.problem.overuse(placement), *self.levels(traffic, variance))

    def levels(self, traffic: Level, variance: Level) -> tuple[Level, Level]:
        """The two levels of the objective, the first before the second."""
        if self.objective == "equality":
            return variance, traffic
        return traffic, variance if self.objective == "traffic" else -variance
