"""How long a component serves a row, learnt from its batches.

A batch of n rows in t tasks keeps processors busy for t c + n s: what a task costs whatever it
does, and what each row costs. Small batches would make c look like service; so both are fitted
over the last batches (least squares), and where their sizes do not tell the two apart, the plain
ratio is taken. What is left over says how much the times of single rows vary: the variance of a
sum of n rows is n times that of one.
"""

import math
from collections import deque
from dataclasses import dataclass

import numpy as np

MOST_BATCHES = 60
LEAST_BATCHES = 6
LEAST_SPREAD = 0.2  # of rows per task, as a coefficient of variation
MOST_SCV = 20.0


@dataclass(frozen=True)
class Batch:
    """One batch of a component."""

    rows: int
    tasks: int
    busy_s: float


@dataclass(frozen=True)
class Service:
    """Seconds for each row and for each task, and the variation of the former."""

    row_s: float = math.nan
    task_s: float = 0.0
    scv: float = 1.0


class ServiceEstimate:
    """Keeps the last batches of one component."""

    def __init__(self) -> None:
        self._batches: deque[Batch] = deque(maxlen=MOST_BATCHES)

    def add(self, batch: Batch) -> None:
        """A batch ended."""
        if batch.rows > 0 and batch.tasks > 0:
            self._batches.append(batch)

    def service(self) -> Service:
        """What a row costs; NaN before the first batch."""
        if not self._batches:
            return Service()
        rows = np.array([batch.rows for batch in self._batches], dtype=np.float64)
        tasks = np.array([batch.tasks for batch in self._batches], dtype=np.float64)
        busy_s = np.array([batch.busy_s for batch in self._batches])
        plain = Service(float(busy_s.sum() / rows.sum()))
        load = rows / tasks
        if len(rows) < LEAST_BATCHES or load.std() < LEAST_SPREAD * load.mean():
            return plain
        # Longer batches vary more: weighing by 1 / sqrt(rows) gives each the same say.
        weight = 1 / np.sqrt(rows)
        design = np.column_stack([tasks, rows]) * weight[:, None]
        (task_s, row_s), *_ = np.linalg.lstsq(design, busy_s * weight, rcond=None)
        if task_s < 0 or row_s <= 0:
            return plain
        left = busy_s - task_s * tasks - row_s * rows
        variance = float(np.sum(left**2 / rows) / max(1, len(rows) - 2))
        return Service(float(row_s), float(task_s), min(variance / row_s**2, MOST_SCV))
