"""OSG for a micro-batch: all its rows are known, so the costly ones are dealt first.

Greedy over rows in any order ends within (2 - 1/n) of the best makespan, and over rows from the
costliest to the cheapest within (4/3 - 1/(3n)) (Graham 1969). Rows of one estimated cost are
alike, and a cost sketch has few distinct estimates, so whole classes are dealt at once.
Differs from Kotto-Kombi 2018, ch. 6 s. 4.1: it sees the batch, where OSG sees one row at a time.
"""

from dataclasses import dataclass

import numpy as np

from penstock.errors import InvalidInput
from penstock.model.observation import Floats, Ints
from penstock.routing.cost_sketch import CostSketch
from penstock.routing.hashing import Hashes
from penstock.routing.levelling import level


@dataclass(frozen=True)
class Schedule:
    """Where rows went, and when each task will have done all it was given."""

    routes: Ints
    free_at_s: Floats


def osg_batch_routes(hashes: Hashes, sketch: CostSketch, free_at_s: Floats) -> Schedule:
    """The task of each row of a batch, by the costs learnt so far."""
    cells, inverse = _compact(sketch.best_cells(hashes), len(sketch.occurrences))
    return batch_schedule(inverse, sketch.cell_costs_s()[cells], free_at_s)


def batch_schedule(classes: Ints, class_costs_s: Floats, free_at_s: Floats) -> Schedule:
    """The task of each row, given its class (0, 1, ...) and the cost of a row of each class."""
    if len(free_at_s) == 0:
        raise InvalidInput("free_at_s is empty; give at least one task.")
    sizes = np.bincount(classes, minlength=len(class_costs_s))
    dealt, free = class_counts(sizes, class_costs_s, free_at_s)
    # Rows of a class stand together in a stable order and take its tasks one after the other.
    small = classes.astype(np.uint16) if len(class_costs_s) <= 65_536 else classes
    order = np.argsort(small, kind="stable")
    tasks = np.tile(np.arange(len(free_at_s)), len(class_costs_s))
    routes = np.empty(len(classes), dtype=np.int64)
    routes[order] = np.repeat(tasks, dealt.ravel())
    return Schedule(routes, free)


def class_counts(sizes: Ints, class_costs_s: Floats, free_at_s: Floats) -> tuple[Ints, Floats]:
    """Rows of each class (down) for each task (across), and when each task is then free."""
    free = np.array(free_at_s, dtype=np.float64)
    dealt = np.zeros((len(sizes), len(free)), dtype=np.int64)
    for number in np.argsort(-np.asarray(class_costs_s), kind="stable").tolist():
        size, cost = int(sizes[number]), float(class_costs_s[number])
        if size == 1:
            dealt[number, int(free.argmin())] = 1
        elif size > 1:
            dealt[number] = level(free, size, cost)
        free += dealt[number] * cost
    return dealt, free


def _compact(cells: Ints, number: int) -> tuple[Ints, Ints]:
    """The cells in use, and for each row its place among them."""
    used = np.flatnonzero(np.bincount(cells, minlength=number))
    place = np.zeros(number, dtype=np.int64)
    place[used] = np.arange(len(used))
    return used, place[cells]
