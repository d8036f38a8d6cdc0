"""Micro-batches as a flow: how the length of a batch moves under a load, and who is late meanwhile.

The symbols of the micro-batch model: O the fixed cost of a batch, K the processors, I the trigger
interval (0: back to back). A batch of length b is followed, after c = max(I, b), by one that takes
what came in these c seconds: of length O + work / K, with the processors that serve as it begins.
Its rows wait for it evenly between 0 and c, and then for its length. As a batch begins every c
seconds, b moves towards that length at the rate 1 / c. Rows come and cost as they do in the mean.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from penstock.sim.following import periods
from penstock.sim.network import Network
from penstock.sim.scenario import Scenario

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SUBSTEPS = 20  # of a period: batches of a quarter of a second in one of 5 s
LONGEST_S = 60.0  # a batch, or ten times the bound; how late is late plays no part


@dataclass(frozen=True)
class BatchFlow:
    """A scenario as a flow, and what each of some sizes makes of it, period by period."""

    scenario: Scenario
    sizes: Ints

    @cached_property
    def edges_s(self) -> Floats:
        """When periods begin and end."""
        ends_s = self.scenario.period_s * np.arange(periods(self.scenario) + 1)
        return np.asarray(np.minimum(ends_s, self.scenario.duration_s), dtype=np.float64)

    @cached_property
    def rows(self) -> Floats:
        """Rows that are expected in each period."""
        return np.diff(self._arrived(self.edges_s)[0])

    @cached_property
    def work_s(self) -> float:
        """Processor-seconds of all rows that are expected."""
        return float(self._arrived(self.edges_s)[1][-1])

    @cached_property
    def _work_s(self) -> Floats:
        network = Network(self.scenario)
        return np.array([network.work_s(source.name) for source in self.scenario.sources])

    def _arrived(self, at_s: Floats) -> tuple[Floats, Floats]:
        """Rows, and processor-seconds of work, that came until some moments."""
        rows = np.stack([source.profile.rows_by(at_s) for source in self.scenario.sources])
        return rows.sum(axis=0), np.tensordot(self._work_s, rows, axes=1)

    @cached_property
    def _processors(self) -> Floats:
        return np.asarray(self.sizes * self.scenario.cluster.slots, dtype=np.float64)

    @cached_property
    def overheads_s(self) -> Floats:
        """O(K) of each size."""
        return np.array([self.scenario.batch.overhead_s(int(k)) for k in self._processors])

    @property
    def longest_s(self) -> float:
        """The length of a batch beyond which none is followed."""
        return max(LONGEST_S, 10 * self.scenario.max_latency_s)

    def advance(self, period: int, length_s: Floats, size: Ints) -> tuple[Floats, Floats]:
        """Batch lengths a period later, and the late rows of the batches that began meanwhile.

        `size` are places in `sizes`; it is broadcast against the lengths, which are its last axis.
        """
        begin_s, end_s = self.edges_s[period : period + 2]
        step_s = (end_s - begin_s) / SUBSTEPS
        moments_s = begin_s + step_s * (np.arange(SUBSTEPS)[:, None] + 0.5)
        bound_s, trigger_s = self.scenario.max_latency_s, self.scenario.batch.trigger_s
        window_s = np.maximum(length_s, trigger_s)
        until, since = self._arrived(moments_s), self._arrived(moments_s - window_s)
        rows_per_s, work = ((u - s) / window_s for u, s in zip(until, since, strict=True))
        overhead_s, processors = self.overheads_s[size], self._processors[size]
        late = np.zeros(np.broadcast_shapes(length_s.shape, size.shape))
        for step in range(SUBSTEPS):
            cycle_s = np.maximum(length_s, trigger_s)
            next_s = overhead_s + work[step] * cycle_s / processors
            late += rows_per_s[step] * np.clip((cycle_s + next_s - bound_s) / cycle_s, 0.0, 1.0)
            length_s = next_s + (length_s - next_s) * np.exp(-step_s / cycle_s)
        return np.minimum(length_s, self.longest_s), late * step_s


def sizes_of(scenario: Scenario, most: int = 64) -> Ints:
    """Sizes to choose from: all there may be, or so many that are spread evenly over them."""
    least, greatest = scenario.cluster.min_executors, scenario.cluster.max_executors
    spread = np.linspace(least, greatest, min(most, greatest - least + 1))
    return np.unique(np.append(np.round(spread), scenario.cluster.executors)).astype(np.int64)


def log_grid(shortest_s: float, longest_s: float, ratio: float = 1.08) -> Floats:
    """Lengths of batches that rise by a ratio."""
    count = 2 + math.ceil(math.log(longest_s / shortest_s) / math.log(ratio))
    return np.geomspace(shortest_s, longest_s, count)
