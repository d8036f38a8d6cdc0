"""The latency model `microbatch`: components run together, all processors shared in time.

A batch of B seconds admits the lambda B rows that came meanwhile, so with O(K) the fixed cost of
a batch on K processors and a = lambda S the load (S processor-seconds for each external row),

    B(K) = O(K) / (1 - a / K),   E[T] = 1.5 B     (back to back)
    B(K) = O(K) + a I / K,       E[T] = I / 2 + B   (at an interval I that is not shorter than B)
    O(K) = fixed + per_processor K + work / K

where work is the task seconds of a batch that no row causes. B has one minimum, at
K = a + sqrt(a^2 + (a fixed + work) / per_processor): more processors than that make it slower and
are never asked for.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from penstock.errors import InvalidInput
from penstock.forecast.regression import LinearRegression
from penstock.model.batch_overhead import USUAL_OVERHEAD, BatchOverhead
from penstock.model.observation import Ints, Observation
from penstock.scaling.models.network import Allocation, Network


def learn_overhead(
    window: Iterable[Observation], prior: BatchOverhead
) -> tuple[BatchOverhead, float]:
    """O(K) from the batches of a run, and the fit's error in seconds (NaN with no batch).

    With one processor count seen, only the fixed part can be learnt; the growth is the prior's.
    """
    line = LinearRegression()
    for observation in window:
        batches, processors = observation.batches, observation.processors
        if batches is None or batches.count == 0 or processors == 0:
            continue
        if batches.mean_overhead_s >= 0:
            line = line.add(float(processors), batches.mean_overhead_s)
    return overhead_of(line, prior)


def overhead_of(line: LinearRegression, prior: BatchOverhead) -> tuple[BatchOverhead, float]:
    """O(K) from the line of measured costs over processors, and the fit's error in seconds."""
    if not line.count:
        return prior, math.nan
    slope = line.slope if line.spread > 0 else prior.per_processor_s
    slope = max(0.0, slope)
    mean_processors = line.origin + line.x / line.count
    fixed = line.mean - slope * mean_processors
    if fixed < 0:
        fixed, slope = 0.0, line.mean / mean_processors if mean_processors > 0 else 0.0
    return BatchOverhead(fixed, slope), line.error


@dataclass(frozen=True)
class Microbatch:
    """Mean latency of micro-batches; `interval_s` is the trigger's, zero for back to back."""

    overhead: BatchOverhead = USUAL_OVERHEAD
    interval_s: float = 0.0

    def __post_init__(self) -> None:
        if not (self.overhead.fixed_s >= 0 and self.overhead.per_processor_s >= 0):
            raise InvalidInput("batch_overhead_s is negative; its parts must be at least 0.")

    @property
    def name(self) -> str:
        return "microbatch"

    def batch_s(self, load: float, processors: int) -> float:
        """Length of a batch; infinite when the processors cannot keep up."""
        if load >= processors:
            return math.inf
        own_s, used = self.overhead.at(processors), load / processors
        paced_s = own_s + used * self.interval_s
        return paced_s if paced_s <= self.interval_s else own_s / (1.0 - used)

    def at(self, load: float, processors: int) -> float:
        """Mean latency on that many processors."""
        batch = self.batch_s(load, processors)
        return 1.5 * batch if batch >= self.interval_s else self.interval_s / 2 + batch

    def latency_s(self, network: Network, parallelism: Ints) -> float:
        """Mean latency; all components share the largest parallelism."""
        return self.at(float(network.loads.sum()), int(parallelism.max(initial=1)))

    def assign(self, network: Network, max_processors: int) -> Allocation:
        """The lowest latency with at most so many processors; often with fewer."""
        load = float(network.loads.sum())
        least = math.floor(load) + 1
        if least > max_processors:
            return self._too_few(network, load, least, max_processors)
        return self._allocation(network, load, self._best(load, max_processors))

    def minimum(self, network: Network, max_latency_s: float, max_processors: int) -> Allocation:
        """The fewest processors that keep the bound, found on the falling side of the minimum."""
        load = float(network.loads.sum())
        least = math.floor(load) + 1
        if least > max_processors:
            return self._too_few(network, load, least, max_processors)
        low, high = least, self._best(load, max_processors)
        best = self._allocation(network, load, high)
        if best.latency_s > max_latency_s:
            sentence = (
                f"a mean latency of {max_latency_s:g} s cannot be met: the best is "
                f"{best.latency_s:.4g} s with {high} processors"
            )
            return Allocation(best.parallelism, high, best.latency_s, sentence)
        while low < high:
            middle = (low + high) // 2
            if self.at(load, middle) <= max_latency_s:
                high = middle
            else:
                low = middle + 1
        return self._allocation(network, load, low)

    def _best(self, load: float, max_processors: int) -> int:
        growth = self.overhead.per_processor_s
        if load <= 0:
            return 1
        if growth <= 0:
            costs = self.overhead.fixed_s + self.overhead.work_s
            return max_processors if costs > 0 else math.floor(load) + 1
        own = load * self.overhead.fixed_s + self.overhead.work_s
        root = load + math.sqrt(load * load + own / growth)
        if not root < max_processors:
            return max_processors
        near = [k for k in (math.floor(root), math.ceil(root)) if load < k <= max_processors]
        return min(near, key=lambda k: (self.at(load, k), k))

    def _allocation(self, network: Network, load: float, processors: int) -> Allocation:
        shared = np.full(len(network.names), processors, dtype=np.int64)
        return Allocation(shared, processors, self.at(load, processors))

    def _too_few(
        self, network: Network, load: float, least: int, max_processors: int
    ) -> Allocation:
        sentence = (
            f"at least {least} processors are needed to keep up, {max_processors} are allowed"
        )
        shared = np.full(len(network.names), max_processors, dtype=np.int64)
        return Allocation(shared, max_processors, math.inf, sentence, least)
