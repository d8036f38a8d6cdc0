"""The latency model `hops`: components run apart, each in batches of its own.

Component i has k_i processors, a load of a_i = lambda_i S_i and a fixed cost of O_i(k_i) a batch.
Where rows come all the time, batches follow each other at once, as in `microbatch`:

    D_i = O_i / (1 - a_i / k_i),   W_i = D_i / 2,   C_i = D_i

with W_i the mean wait for the batch before, and C_i the time from one batch to the next. Rows that
another component writes come together, when its batch ends, every C_u: a component that is done by
then begins at once, and takes the rows of that time,

    D_i = O_i + a_i C_u / k_i <= C_u,   W_i = 0,   C_i = C_u,

and one that is not is busy all the time, as above. Several components write at any moment of each
other's batches, so a bulk finds a batch under way with probability D_i / C_u, and waits half of it.
What a component sends to itself is there when its batch ends. At a trigger interval I all batches
begin at its multiples:

    D_i = O_i + a_i I / k_i <= I,   C_i = I,
    W_i = I / 2 for rows from outside and I - D_u for those of u,

and E[T] = sum_i passes_i (W_i + D_i), with passes_i how often what leads to a result goes through
component i. A component with too much to do for the interval is busy all the time.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from penstock.model.batch_overhead import BatchOverhead
from penstock.model.observation import Floats, Ints
from penstock.scaling.models.jackson import too_few
from penstock.scaling.models.network import Allocation, Network

ROUNDS = 8  # of a loop's cycles, which depend on each other
LEAST_GAIN = 1e-9  # of the latency


@dataclass(frozen=True)
class Way:
    """How rows come to components and lead to results; components in the network's order.

    `senders` are the components that write to each, `share` the part of its rows that each of them
    sends: what is left comes from outside.
    """

    senders: tuple[tuple[int, ...], ...]
    share: tuple[tuple[float, ...], ...]
    passes: tuple[float, ...]


def way(senders: tuple[tuple[int, ...], ...], share: tuple[tuple[float, ...], ...],
        results: Floats) -> Way:  # fmt: skip
    """With the passes that follow: from where results are made back to where rows came from.

    A row of component i stems from one of u with the probability that u sent what i gets; `results`
    is the part of all results that each component makes.

    >>> way(((), (0, 1)), ((), (0.5, 0.5)), np.array([0.0, 1.0])).passes
    (1.0, 2.0)
    """
    before = np.zeros((len(senders), len(senders)))
    for to, (ups, parts) in enumerate(zip(senders, share, strict=True)):
        before[list(ups), to] = parts
    passes = np.linalg.solve(np.eye(len(senders)) - before, results)
    return Way(senders, share, tuple(np.maximum(passes, 0.0).tolist()))


@dataclass(frozen=True)
class Hops:
    """Mean latency through components that run apart."""

    way: Way
    overheads: tuple[BatchOverhead, ...]
    interval_s: float = 0.0

    @property
    def name(self) -> str:
        return "hops"

    def latency_s(self, network: Network, parallelism: Ints) -> float:
        """From the arrival of what leads to a result until that is written."""
        return self._latency_s(network.loads.tolist(), parallelism.tolist())

    def _latency_s(self, loads: list[float], parallelism: list[int]) -> float:
        if any(load >= k for load, k in zip(loads, parallelism, strict=True)):
            return math.inf
        own = [one.at(k) for one, k in zip(self.overheads, parallelism, strict=True)]
        used = [load / k for load, k in zip(loads, parallelism, strict=True)]
        busy = [o / (1.0 - u) for o, u in zip(own, used, strict=True)]  # D where it never rests
        batch, cycle = busy.copy(), [max(one, self.interval_s) for one in busy]
        for _ in range(ROUNDS):
            before = cycle.copy()
            for i, senders in enumerate(self.way.senders):
                batch[i], cycle[i] = self._batch(i, senders, own[i], used[i], busy[i], cycle)
            if before == cycle:
                break
        total = 0.0
        for i, passes in enumerate(self.way.passes):
            total += passes * (batch[i] + self._wait_s(i, batch, busy, cycle))
        return total

    def _batch(
        self, i: int, senders: tuple[int, ...], own: float, used: float, busy: float,
        cycle: list[float],
    ) -> tuple[float, float]:  # fmt: skip
        """How long its batches take, and how long from one to the next."""
        if self.interval_s > 0:
            paced = own + used * self.interval_s
            return (paced, self.interval_s) if paced <= self.interval_s else (busy, busy)
        if not senders or i in senders or sum(self.way.share[i]) < 1 - 1e-6:
            return busy, busy
        every = 1.0 / sum(1.0 / cycle[up] for up in senders)
        return (busy, busy) if busy >= every else (own + used * every, every)

    def _wait_s(
        self, i: int, batch: list[float], busy: list[float], cycle: list[float]
    ) -> float:  # fmt: skip
        """For the batch before, or for the next multiple of the interval."""
        paced = 0 < self.interval_s == cycle[i]
        outside = 1.0 - sum(self.way.share[i])
        waited = outside * (self.interval_s if paced else batch[i]) / 2
        others = len(set(self.way.senders[i]) - {i})
        for up, share in zip(self.way.senders[i], self.way.share[i], strict=True):
            if paced:
                done = batch[up] if cycle[up] == self.interval_s else self.interval_s / 2
                waited += share * (self.interval_s - done)
            elif up == i:
                continue  # there when its batch ends
            elif cycle[i] <= busy[i]:  # it never rests
                waited += share * batch[i] / 2
            elif others > 1:
                waited += share * batch[i] / cycle[i] * batch[i] / 2
        return waited

    def assign(self, network: Network, max_processors: int) -> Allocation:
        """The lowest latency that adding processors one by one finds; often with fewer."""
        return self._grown(network, max_processors, lambda _: False)

    def minimum(self, network: Network, max_latency_s: float, max_processors: int) -> Allocation:
        """The fewest processors that keep the bound, as far as adding and removing finds them."""
        found = self._grown(network, max_processors, lambda reached: reached <= max_latency_s)
        if found.infeasible is not None:
            return found
        if found.latency_s > max_latency_s:
            sentence = (
                f"a mean latency of {max_latency_s:g} s cannot be met: the best is "
                f"{found.latency_s:.4g} s with {found.processors} processors"
            )
            return Allocation(found.parallelism, found.processors, found.latency_s, sentence)
        return self._trimmed(network, found, max_latency_s)

    def _grown(
        self, network: Network, max_processors: int, enough: Callable[[float], bool]
    ) -> Allocation:
        loads = network.loads.tolist()
        ks = [math.floor(load) + 1 for load in loads]
        if sum(ks) > max_processors:
            return too_few(np.array(ks, dtype=np.int64), max_processors)
        reached = self._latency_s(loads, ks)
        while sum(ks) < max_processors and not enough(reached):
            tried = [(self._latency_s(loads, _with(ks, i, 1)), i) for i in range(len(ks))]
            least, where = min(tried, default=(math.inf, 0))
            if not least < reached * (1 - LEAST_GAIN):
                break
            reached, ks = least, _with(ks, where, 1)
        return Allocation(np.array(ks, dtype=np.int64), sum(ks), reached)

    def _trimmed(self, network: Network, found: Allocation, max_latency_s: float) -> Allocation:
        loads, ks, reached = network.loads.tolist(), found.parallelism.tolist(), found.latency_s
        while True:
            fewer = [_with(ks, i, -1) for i, k in enumerate(ks) if k - 1 > loads[i]]
            tried = [(self._latency_s(loads, one), one) for one in fewer]
            kept = [pair for pair in tried if pair[0] <= max_latency_s]
            if not kept:
                return Allocation(np.array(ks, dtype=np.int64), sum(ks), reached)
            reached, ks = min(kept)


def _with(parallelism: list[int], i: int, more: int) -> list[int]:
    changed = parallelism.copy()
    changed[i] += more
    return changed
