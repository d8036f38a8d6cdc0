"""Waiting as part of an operator's work, as for an accelerator or a service elsewhere.

Alone in its file because executors import it. How long a row waits is a function of its number, so
a run that is repeated with other processors meets the same service times.
"""

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.workloads.generator import uniform


@dataclass(frozen=True)
class Waiting:
    """Exponential times of this mean, one for each row."""

    mean_s: float = 0.0
    stream: int = 0  # another one for each operator, or they would wait alike

    def times_s(self, row: NDArray[np.int64]) -> NDArray[np.float64]:
        """How long each row waits."""
        return np.asarray(-self.mean_s * np.log1p(-uniform(row, 7_919 + self.stream)))

    def wait(self, row: NDArray[np.int64]) -> None:
        """Let these rows wait, one after the other."""
        if self.mean_s > 0:
            time.sleep(float(self.times_s(row).sum()))
