"""What a latency model looks at, and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from penstock.model.observation import Floats, Ints


@dataclass(frozen=True)
class Network:
    """Components as columns, in one order.

    `visits` is how often an external row, or rows derived from it, come to each component
    (arrival rate over external rate); the queues see `arrival_rate_per_s`, which may hold a
    backlog that is to be worked off.
    """

    names: tuple[str, ...]
    arrival_rate_per_s: Floats
    service_rate_per_s: Floats  # of one processor
    visits: Floats
    arrival_scv: Floats
    service_scv: Floats
    external_rate_per_s: float

    @property
    def loads(self) -> Floats:
        """Processors kept busy by each component."""
        return self.arrival_rate_per_s / self.service_rate_per_s

    @property
    def service_time_s(self) -> float:
        """Processor-seconds for each external row: no latency can be lower (apart)."""
        return float(np.sum(self.visits / self.service_rate_per_s))


def network(
    names: tuple[str, ...],
    arrival_rate_per_s: Floats,
    service_rate_per_s: Floats,
    external_rate_per_s: float,
    arrival_scv: Floats | None = None,
    service_scv: Floats | None = None,
) -> Network:
    """A network without backlog: visits are arrival rates over the external rate."""
    ones = np.ones(len(names))
    rate = external_rate_per_s if external_rate_per_s > 0 else 1.0
    return Network(
        names,
        arrival_rate_per_s,
        service_rate_per_s,
        arrival_rate_per_s / rate,
        ones if arrival_scv is None else arrival_scv,
        ones if service_scv is None else service_scv,
        external_rate_per_s,
    )


@dataclass(frozen=True)
class Allocation:
    """Processors for each component of a network, and the latency to expect.

    When `infeasible` says why a request cannot be met, the rest is the best that can be had.
    """

    parallelism: Ints
    processors: int
    latency_s: float
    infeasible: str | None = None
    least_processors: int | None = None  # that could keep up at all, where too few are allowed

    def named(self, network: Network) -> Mapping[str, int]:
        """Parallelism by the component's name."""
        return dict(zip(network.names, map(int, self.parallelism), strict=True))


class LatencyModel(Protocol):
    """Mean latency of an external row as a function of processors, and its two inverses."""

    @property
    def name(self) -> str:
        """The name by which it is chosen."""

    def latency_s(self, network: Network, parallelism: Ints) -> float:
        """Mean latency; infinite when some component cannot keep up."""

    def assign(self, network: Network, max_processors: int) -> Allocation:
        """The lowest latency with at most so many processors."""

    def minimum(self, network: Network, max_latency_s: float, max_processors: int) -> Allocation:
        """The fewest processors that keep the bound, of at most so many."""
