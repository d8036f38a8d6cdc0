"""AssignProcessors for processors of unequal speed (Fu et al. 2017, s. III-A, leave the how open).

A component that holds k processors of total speed V serves like k processors of speed V / k:

    E[T_i] = (a_i + s_i) / 2 E[Q](M/M/k with rate mu_i V / k) + k / (mu_i V)

Processors are handed out from the fastest on. First each goes where the most load is not yet
covered; once all components keep up, each goes where it lowers E[T] most. One that would only
slow every component down stays unused. With equal speeds this is Algorithm 1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.scaling.models.erlang import waiting_time_s
from penstock.scaling.models.network import Network


@dataclass(frozen=True)
class SpeedAllocation:
    """For each component the places (in the list of speeds) of its processors."""

    processors: tuple[tuple[int, ...], ...]
    latency_s: float
    infeasible: str | None = None


def assign_by_speed(
    network: Network, speeds: Sequence[float], general: bool = True
) -> SpeedAllocation:
    """Hand out processors whose speed is relative to the one service rates were measured on."""
    count = len(network.names)
    loads = [float(load) for load in network.loads]
    held: list[list[int]] = [[] for _ in range(count)]
    total = [0.0] * count
    for place in sorted(range(len(speeds)), key=lambda place: (-speeds[place], place)):
        short = [i for i in range(count) if total[i] <= loads[i]]
        if short:
            chosen = max(short, key=lambda i: (loads[i] - total[i], -i))
        else:
            gains = [
                _gain(network, i, len(held[i]), total[i], speeds[place], general)
                for i in range(count)
            ]
            chosen = max(range(count), key=lambda i: (gains[i], -i))
            if gains[chosen] <= 0:
                continue
        held[chosen].append(place)
        total[chosen] += speeds[place]
    latency = sum(_part(network, i, len(held[i]), total[i], general) for i in range(count))
    sentence = None
    if not math.isfinite(latency):
        sentence = (
            f"a load of {sum(loads):.4g} cannot be served by {len(speeds)} processors of total "
            f"speed {sum(speeds):.4g}"
        )
    return SpeedAllocation(tuple(map(tuple, held)), latency, sentence)


def _gain(network: Network, i: int, held: int, total: float, speed: float, general: bool) -> float:
    return _part(network, i, held, total, general) - _part(
        network, i, held + 1, total + speed, general
    )


def _part(network: Network, i: int, held: int, total: float, general: bool) -> float:
    """One component's share of E[T]; infinite when it cannot keep up."""
    if held == 0 or not total > 0:
        return math.inf
    rate = float(network.service_rate_per_s[i]) * total / held
    waiting = waiting_time_s(float(network.arrival_rate_per_s[i]), rate, held)
    if general:
        waiting *= float(network.arrival_scv[i] + network.service_scv[i]) / 2
    return float(network.visits[i]) * (waiting + 1.0 / rate)
