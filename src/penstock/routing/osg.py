"""OSG row by row: each goes to the task that will be free first (seed 002 ch.6 s.4.1)."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.errors import InvalidInput
from penstock.model.observation import Floats, Ints


@dataclass(frozen=True)
class Schedule:
    """Where rows went, and when each task will have done all it was given."""

    routes: Ints
    free_at_s: Floats


def greedy_schedule(
    costs_s: Floats, free_at_s: Floats, arrivals_s: Floats | None = None
) -> Schedule:
    """Rows in their order, each to the task with the least work pending; ties to the lower number.

    A task's pending work is what it was given and cannot have done yet, so a new task (free at
    once) is served first. `arrivals_s` must ascend; None: all rows are there at time 0.
    """
    if len(free_at_s) == 0:
        raise InvalidInput("free_at_s is empty; give at least one task.")
    free: list[float] = np.asarray(free_at_s, dtype=np.float64).tolist()
    if arrivals_s is None:
        routes = _by_heap(costs_s.tolist(), free)
    else:
        routes = [
            _next_task(free, cost, now)
            for cost, now in zip(costs_s.tolist(), arrivals_s.tolist(), strict=True)
        ]
    return Schedule(np.array(routes, dtype=np.int64), np.array(free))


def _next_task(free: list[float], cost: float, now: float) -> int:
    task, start = 0, max(free[0], now)
    for other in range(1, len(free)):
        if start <= now:
            break  # idle already; none can be sooner
        if free[other] < start:
            task, start = other, max(free[other], now)
    free[task] = start + cost
    return task


def _by_heap(costs: Sequence[float], free: list[float]) -> list[int]:
    heap = [(at, task) for task, at in enumerate(free)]
    heapq.heapify(heap)
    routes = []
    for cost in costs:
        at, task = heap[0]
        heapq.heapreplace(heap, (at + cost, task))
        routes.append(task)
    for at, task in heap:
        free[task] = at
    return routes
