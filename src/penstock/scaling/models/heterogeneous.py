"""AssignProcessors for processors of unequal speed (Fu et al. 2017, s. III-A, leave the how open).

A component that holds k processors of total speed V serves like k processors of speed V / k:

    E[T_i] = (a_i + s_i) / 2 E[Q](M/M/k with rate mu_i V / k) + k / (mu_i V)

Processors are handed out from the fastest on. First each goes where the most load is not yet
covered; once all components keep up, each goes where it lowers E[T] most. One that would only
slow every component down stays unused. With equal speeds this is Algorithm 1.

Which sets of processors cover which loads is a question of packing. A few processors are therefore
divided exactly (`speed_exact.py`). Of more, where the first rule does not cover all loads, a
program does (`speed_cover.py`); and single ones are moved or exchanged while that lowers E[T].
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.scaling.models.erlang import waiting_time_s
from penstock.scaling.models.network import Network
from penstock.scaling.models.speed_cover import covering
from penstock.scaling.models.speed_exact import Counts, best_split, work_of

_FEW = 64  # processors among which exchanges are tried
_LITTLE_WORK = 20_000  # for which the exact program is solved


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
    exact = _exactly(network, speeds, general)
    if exact is not None:
        return exact
    loads = network.loads.tolist()
    order = sorted(range(len(speeds)), key=lambda place: (-speeds[place], place))
    split = _Split(network, speeds, general)
    split.deal(order)
    if not math.isfinite(split.latency_s):
        cover = covering(loads, speeds)
        if cover is None:
            return SpeedAllocation(split.places, math.inf, _too_slow(loads, speeds))
        split = _Split(network, speeds, general, cover)
        held = {place for places in cover for place in places}
        split.deal([place for place in order if place not in held])
    if len(speeds) <= _FEW:
        split.improve()
    return SpeedAllocation(split.places, split.latency_s)


def fewest_by_speed(
    network: Network, speeds: Sequence[float], max_latency_s: float, general: bool = True
) -> SpeedAllocation:
    """The fewest processors that keep the bound: the fastest ones, as faster ones never do worse.

    When not even all of them keep it, what they do is the answer, and it says so.
    """
    fastest = sorted(range(len(speeds)), key=lambda place: (-speeds[place], place))

    def of(count: int) -> SpeedAllocation:
        found = assign_by_speed(network, [speeds[place] for place in fastest[:count]], general)
        places = tuple(tuple(fastest[i] for i in held) for held in found.processors)
        return SpeedAllocation(places, found.latency_s, found.infeasible)

    best = of(len(speeds))
    if best.infeasible or best.latency_s > max_latency_s:
        sentence = f"a mean latency of {max_latency_s:g} s cannot be met with these processors"
        return SpeedAllocation(best.processors, best.latency_s, best.infeasible or sentence)
    low, high = len(network.names), len(speeds)
    while low < high:
        middle = (low + high) // 2
        if of(middle).latency_s <= max_latency_s:
            high = middle
        else:
            low = middle + 1
    return of(low)


def _exactly(network: Network, speeds: Sequence[float], general: bool) -> SpeedAllocation | None:
    """The best there is; None where that takes too long."""
    number = Counter(speeds)
    kinds = sorted(number, reverse=True)
    counts = tuple(number[speed] for speed in kinds)
    if work_of(counts) * len(network.names) > _LITTLE_WORK:
        return None
    empty = _Split(network, speeds, general)

    def part(i: int, taken: Counts) -> float:
        return empty.part(i, sum(taken), sum(n * s for n, s in zip(taken, kinds, strict=True)))

    split = best_split(part, counts, len(network.names))
    free = {speed: [p for p, own in enumerate(speeds) if own == speed] for speed in kinds}
    held = [
        [free[speed].pop(0) for n, speed in zip(taken, kinds, strict=True) for _ in range(n)]
        for taken in split
    ]
    found = _Split(network, speeds, general, held)
    if not math.isfinite(found.latency_s):
        return SpeedAllocation(found.places, math.inf, _too_slow(network.loads.tolist(), speeds))
    return SpeedAllocation(found.places, found.latency_s)


def _too_slow(loads: Sequence[float], speeds: Sequence[float]) -> str:
    return (
        f"a load of {sum(loads):.4g} cannot be served by {len(speeds)} processors of total "
        f"speed {sum(speeds):.4g}"
    )


class _Split:
    """Processors in the making: who holds which, and what that is worth."""

    def __init__(
        self,
        network: Network,
        speeds: Sequence[float],
        general: bool,
        held: Sequence[Sequence[int]] | None = None,
    ) -> None:
        self._network, self._speeds, self._general = network, speeds, general
        self._held = [list(places) for places in held or [()] * len(network.names)]
        self._total = [sum(speeds[place] for place in places) for places in self._held]
        self._loads: list[float] = network.loads.tolist()

    @property
    def places(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(sorted(places, key=self._rank)) for places in self._held)

    @property
    def latency_s(self) -> float:
        """E[T]; infinite when some component cannot keep up."""
        return sum(self.part(i, 0, 0.0) for i in range(len(self._held)))

    def deal(self, order: Sequence[int]) -> None:
        """Hand out processors in this order."""
        for place in order:
            chosen = self._taker(self._speeds[place])
            if chosen is not None:
                self._give(chosen, place)

    def improve(self) -> None:
        """Move or exchange single processors as long as that lowers E[T]."""
        while self._improved_once():
            pass

    def _improved_once(self) -> bool:
        for changes in self._exchanges():
            before = sum(self.part(i, 0, 0.0) for i, _, _ in changes)
            after = sum(
                self.part(
                    i,
                    len(gained) - len(lost),
                    sum(self._speeds[p] for p in gained) - sum(self._speeds[p] for p in lost),
                )
                for i, gained, lost in changes
            )
            if after < before * (1 - 1e-9):
                for i, gained, lost in changes:
                    for place in lost:
                        self._held[i].remove(place)
                        self._total[i] -= self._speeds[place]
                    for place in gained:
                        self._give(i, place)
                return True
        return False

    def _exchanges(self) -> Iterator[list[tuple[int, list[int], list[int]]]]:
        """Single moves and exchanges: who gains and loses which processors."""
        homes = {place: i for i, places in enumerate(self._held) for place in places}
        everyone = range(len(self._held))
        for place in range(len(self._speeds)):
            home = homes.get(place)
            for i in everyone:
                if i == home:
                    yield [(i, [], [place])]
                elif home is None:
                    yield [(i, [place], [])]
                    yield from ([(i, [place], [other])] for other in self._held[i])
                else:
                    yield [(i, [place], []), (home, [], [place])]
                    for other in self._held[i]:
                        yield [(i, [place], [other]), (home, [other], [place])]

    def _taker(self, speed: float) -> int | None:
        everyone = range(len(self._held))
        short = [i for i in everyone if self._total[i] <= self._loads[i]]
        if short:
            return max(short, key=lambda i: (self._loads[i] - self._total[i], -i))
        gains = [self.part(i, 0, 0.0) - self.part(i, 1, speed) for i in everyone]
        chosen = max(everyone, key=lambda i: (gains[i], -i))
        return chosen if gains[chosen] > 0 else None

    def _give(self, i: int, place: int) -> None:
        self._held[i].append(place)
        self._total[i] += self._speeds[place]

    def _rank(self, place: int) -> tuple[float, int]:
        return (-self._speeds[place], place)

    def part(self, i: int, more: int, faster: float) -> float:
        """One component's share of E[T] with so many more processors, of that speed in all."""
        network, held, total = self._network, len(self._held[i]) + more, self._total[i] + faster
        if held <= 0 or not total > 0:
            return math.inf
        rate = float(network.service_rate_per_s[i]) * total / held
        waiting = waiting_time_s(float(network.arrival_rate_per_s[i]), rate, held)
        if math.isinf(waiting):
            return math.inf
        if self._general:
            waiting *= float(network.arrival_scv[i] + network.service_scv[i]) / 2
        return float(network.visits[i]) * (waiting + 1.0 / rate)
