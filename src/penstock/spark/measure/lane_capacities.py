"""How many rows a second one lane serves, learnt from the tasks of its source.

A lane is a task: what a row costs its processor, without what a task costs whatever it reads, says
how many rows a second it could serve at most. The runner of the source plans its lanes by that; it
is told by its control file, and only of changes that matter.
"""

import math
from collections.abc import Mapping

from penstock.spark.measure.service_estimate import Batch, ServiceEstimate
from penstock.spark.sources.control import Controls
from penstock.spark.sources.running.source import RunningSource

LEAST_CHANGE = 0.1  # of the capacity written last


class LaneCapacities:
    """Of the sources whose users name no capacity."""

    def __init__(self, controls: Controls, sources: Mapping[str, RunningSource]) -> None:
        self._controls = controls
        self._learnt = {
            name: ServiceEstimate() for name, one in sources.items() if one.learns_capacity
        }
        self._written: dict[str, float] = {}

    def learn(self, component: str, batch: Batch) -> None:
        """Batches of a component ended; components of sources have the sources' names."""
        if component in self._learnt:
            self._learnt[component].add(batch)

    def tell(self) -> None:
        """Let runners know."""
        for source, learnt in self._learnt.items():
            row_s = learnt.service().row_s
            if not (math.isfinite(row_s) and row_s > 0):
                continue
            capacity, written = 1.0 / row_s, self._written.get(source, math.nan)
            if not abs(capacity - written) <= LEAST_CHANGE * written:
                self._controls.of(source).order(lane_capacity_per_s=capacity)
                self._written[source] = capacity
