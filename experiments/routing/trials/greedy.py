"""OSG row by row: each goes to the task that will be free first.

Kotto-Kombi 2018, ch. 6 s. 4.1.
"""

import heapq

import numpy as np

from penstock.errors import InvalidInput
from penstock.model.observation import Floats
from penstock.routing.osg import Schedule


def greedy_schedule(
    costs_s: Floats, free_at_s: Floats, arrivals_s: Floats | None = None
) -> Schedule:
    """Rows in their order, each to the task with the least work pending; ties to the lower number.

    `free_at_s` says when each task will have done what it was given, or since when it is idle, so
    a new task (0) is served first, and of idle ones that which has been idle longest.
    `arrivals_s` must ascend; None: all rows are there at once, and no task waits for them.
    """
    if len(free_at_s) == 0:
        raise InvalidInput("free_at_s is empty; give at least one task.")
    heap = [(at, task) for task, at in enumerate(np.asarray(free_at_s, np.float64).tolist())]
    heapq.heapify(heap)
    routes = np.empty(len(costs_s), dtype=np.int64)
    arrivals = np.full(len(costs_s), -np.inf) if arrivals_s is None else arrivals_s
    for row, (cost, now) in enumerate(zip(costs_s.tolist(), arrivals.tolist(), strict=True)):
        at, task = heap[0]
        heapq.heapreplace(heap, (max(at, now) + cost, task))
        routes[row] = task
    free = np.array([at for at, _ in sorted(heap, key=lambda entry: entry[1])])
    return Schedule(routes, free)
