"""The latency models `mmk` and `gigk`: an open network of queues (Fu et al. 2017, s. III).

    E[T](k) = (1 / lambda_0) sum_i lambda_i E[T_i](k_i)                  (4)
    E[T_i](k_i) = (a_i + s_i) / 2 E[Q_i](M/M/k_i) + 1 / mu_i             (5, Whitt; 1 for mmk)

with a_i and s_i the squared coefficients of variation of times between arrivals and of service.
E[T_i] is convex and falling in k_i, so AssignProcessors (Algorithm 1) hands out processors in the
order of their gain. All gains of a component come from one recursion; sorting them once gives
every allocation, so MinProcessors (Algorithm 2) costs one sort too instead of a call of
AssignProcessors for each processor added.

Differs from Fu et al. 2017, Algorithm 1: stops at K_max; its loop condition hands out one more.
Differs from Fu et al. 2017, Algorithm 2: the lower bound weighs each service time by its visit
ratio.
Differs from Fu et al. 2017, s. III-B: processors without a gain in double precision go by
utilisation.
"""

import heapq
import math
from dataclasses import dataclass
from itertools import islice

import numpy as np

from penstock.model.observation import Floats, Ints
from penstock.scaling.models.erlang import (
    all_gains_s,
    gains_s,
    waiting_time_s,
    waiting_times_s,
)
from penstock.scaling.models.network import Allocation, Network

_NEGLIGIBLE = 1e-17  # of the latency: below the resolution of a double
_FEW = 16  # components that are quicker one by one than as columns


@dataclass(frozen=True)
class Jackson:
    """M/M/k nodes, or GI/G/k nodes with Whitt's correction when `general`."""

    general: bool = False

    @property
    def name(self) -> str:
        return "gigk" if self.general else "mmk"

    def latency_s(self, network: Network, parallelism: Ints) -> float:
        """Mean time from a row's arrival until all that derives from it is done."""
        if len(parallelism) > _FEW:
            return float(self.latencies_s(network, parallelism))
        rows = zip(
            network.arrival_rate_per_s.tolist(),
            network.service_rate_per_s.tolist(),
            self._weights(network).tolist(),
            parallelism.tolist(),
            strict=True,
        )
        queueing = 0.0
        for rate, mu, weight, k in rows:
            waiting = waiting_time_s(rate, mu, k) if rate else 0.0
            if math.isinf(waiting):
                return math.inf  # also where nothing varies and the weight is 0
            queueing += weight * waiting
        return queueing + network.service_time_s

    def latencies_s(self, networks: Network, parallelism: Ints) -> Floats:
        """`latency_s` of several networks of the same components, which are columns of one."""
        rates, mus = networks.arrival_rate_per_s, networks.service_rate_per_s
        waiting = waiting_times_s(rates.ravel(), mus.ravel(), parallelism.ravel())
        waiting = waiting.reshape(rates.shape)
        with np.errstate(invalid="ignore"):
            queueing = np.where(np.isinf(waiting), np.inf, self._weights(networks) * waiting)
        total: Floats = (queueing + networks.visits / mus).sum(axis=0)
        return total

    def assign(self, network: Network, max_processors: int) -> Allocation:
        """AssignProcessors: the lowest latency with at most `max_processors`."""
        least = self._least(network)
        fewest = int(least.sum())
        if fewest > max_processors:
            return too_few(least, max_processors)
        owner, gains = self._gains(network, max_processors - fewest)
        order = np.argsort(-gains, kind="stable")[: max_processors - fewest]
        chosen = least + _counted(order, owner, len(least))
        left = max_processors - int(chosen.sum())
        parallelism = _level(network, chosen, left)
        return Allocation(parallelism, int(parallelism.sum()), self.latency_s(network, parallelism))

    def minimum(self, network: Network, max_latency_s: float, max_processors: int) -> Allocation:
        """MinProcessors: the fewest processors whose latency is at most the bound."""
        least = self._least(network)
        fewest = int(least.sum())
        if fewest > max_processors:
            return too_few(least, max_processors)
        lower = network.service_time_s
        owner, gains = self._gains(network, max_processors - fewest)
        order = np.argsort(-gains, kind="stable")
        start = self.latency_s(network, least)
        after = start - np.cumsum(gains[order])
        steps = 0 if start <= max_latency_s else 1 + int(np.searchsorted(-after, -max_latency_s))
        steps = min(steps, max_processors - fewest, len(order))

        def at(step: int) -> Allocation:
            chosen = least + _counted(order[:step], owner, len(least))
            return Allocation(chosen, int(chosen.sum()), self.latency_s(network, chosen))

        found = at(steps)
        # The running sum may be off by its rounding: settle the step with exact latencies.
        while steps < min(max_processors - fewest, len(order)) and found.latency_s > max_latency_s:
            steps += 1
            found = at(steps)
        while steps > 0 and (fewer := at(steps - 1)).latency_s <= max_latency_s:
            steps, found = steps - 1, fewer
        if found.latency_s <= max_latency_s:
            return found
        why = (
            f"service alone takes {lower:.4g} s"
            if lower > max_latency_s
            else f"{found.processors} processors reach {found.latency_s:.4g} s"
        )
        sentence = (
            f"a mean latency of {max_latency_s:g} s cannot be met with {max_processors} "
            f"processors: {why}"
        )
        return Allocation(found.parallelism, found.processors, found.latency_s, sentence)

    def _weights(self, network: Network) -> Floats:
        if not self.general:
            return network.visits
        return network.visits * (network.arrival_scv + network.service_scv) / 2

    def _least(self, network: Network) -> Ints:
        least: Ints = (np.floor(network.loads) + 1).astype(np.int64)
        return least

    def _gains(self, network: Network, most: int) -> tuple[Ints, Floats]:
        """Gains of further processors, component after component, each falling; and whose."""
        floor = _NEGLIGIBLE * max(network.service_time_s, 1e-300)
        rates, mus = network.arrival_rate_per_s, network.service_rate_per_s
        if len(rates) > _FEW:
            return all_gains_s(rates, mus, self._weights(network), floor, most)
        owner: list[int] = []
        found: list[float] = []
        rows = zip(rates.tolist(), mus.tolist(), self._weights(network).tolist(), strict=True)
        for i, (rate, mu, weight) in enumerate(rows):
            if weight > 0:
                for gain in islice(gains_s(rate, mu), most):
                    if gain * weight <= floor:
                        break
                    found.append(gain * weight)
                    owner.append(i)
        return np.array(owner, dtype=np.int64), np.array(found)


MMK = Jackson(general=False)
GIGK = Jackson(general=True)


def _counted(order: Ints, owner: Ints, components: int) -> Ints:
    """How many of the chosen gains belong to each component."""
    chosen: Ints = np.bincount(owner[order], minlength=components).astype(np.int64)
    return chosen


def _level(network: Network, parallelism: Ints, left: int) -> Ints:
    """Give the rest to the components whose processors are busiest: in bulk, then one by one."""
    if left <= 0 or not len(parallelism):
        return parallelism
    loads = np.maximum(network.loads, 1e-12)
    total = int(parallelism.sum()) + left
    open_ = np.ones(len(loads), dtype=bool)
    grown: Ints = parallelism.copy()
    while open_.any():
        free = total - int(parallelism[~open_].sum())
        share = np.floor(free * (loads / loads[open_].sum())).astype(np.int64)
        full = open_ & (share < parallelism)
        if not full.any():
            grown[open_] = share[open_]
            break
        open_ &= ~full
    left = total - int(grown.sum())
    queue = [(-load / k, i) for i, (load, k) in enumerate(zip(loads, grown.tolist(), strict=True))]
    heapq.heapify(queue)
    for _ in range(left):
        _, i = queue[0]
        grown[i] += 1
        heapq.heapreplace(queue, (-loads[i] / grown[i], i))
    return grown


def too_few(least: Ints, max_processors: int) -> Allocation:
    """Not even stable: the best is to share what there is in proportion to the need."""
    need = int(least.sum())
    left = max(0, max_processors - len(least))
    exact = (least - 1) * (left / max(1, need - len(least)))
    share = np.floor(exact).astype(np.int64)
    most_cut = np.argsort(share - exact, kind="stable")[: left - int(share.sum())]
    share[most_cut] += 1
    sentence = f"at least {need} processors are needed to keep up, {max_processors} are allowed"
    return Allocation(1 + share, int((1 + share).sum()), math.inf, sentence, need)
