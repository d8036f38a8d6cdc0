"""Operators on a loop, simulated together event by event: a row may come back within the slice."""

from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count

import numpy as np

from penstock.sim.jobs import Jobs
from penstock.sim.network import Network
from penstock.sim.station import Station, leaving_share
from penstock.sim.tally import OperatorTally

Waiting = tuple[float, float, int, float]  # arrival, origin, rows, service


class LoopSlice:
    """One slice of time of the stations of a loop."""

    def __init__(
        self,
        stations: Mapping[str, Station],
        network: Network,
        from_s: float,
        until_s: float,
        rng: np.random.Generator,
    ) -> None:
        self._stations, self._network, self._rng = stations, network, rng
        self._from_s, self._until_s = from_s, until_s
        self._events = list[tuple[float, int, str, float, int]]()
        self._number = count()  # the order of events at one moment is that of their making
        self._queues = dict[str, list[Waiting]]()
        self._emitted = dict[str, list[tuple[float, float, int]]]()

    def serve(self, tallies: Mapping[str, OperatorTally]) -> Iterator[tuple[str, Jobs]]:
        """Simulate it; what leaves for stations and sinks outside, or is still under way inside."""
        for name, station in self._stations.items():
            tallies[name].busy_s += station.residual_s(self._from_s)
            jobs = station.arrived(self._until_s)
            for at_s, origin_s, rows in _listed(jobs):
                self._events.append((at_s, next(self._number), name, origin_s, rows))
        heapify(self._events)
        for name, station in self._stations.items():
            self._resume(name, station, tallies[name])
        while self._events:
            at_s, _, name, origin_s, rows = heappop(self._events)
            station, tally = self._stations[name], tallies[name]
            tally.offered_rows += rows
            service_s = station.stretch * station.spec.service.one_s(rows, station.rng)
            self._begin((at_s, origin_s, rows, service_s), name, station, tally)
        for name, station in self._stations.items():
            self._suspend(name, station)
            tallies[name].busy_s -= station.residual_s(self._until_s)
        for target, parts in self._emitted.items():
            parts.sort()
            yield target, _jobs(parts)

    def _resume(self, name: str, station: Station, tally: OperatorTally) -> None:
        """Go on with the jobs that waited when the slice began."""
        self._queues[name] = []
        for (at_s, origin_s, rows), service_s in zip(
            _listed(station.queue), station.services_s.tolist(), strict=True
        ):
            self._begin((at_s, origin_s, rows, service_s), name, station, tally)

    def _begin(self, job: Waiting, name: str, station: Station, tally: OperatorTally) -> None:
        """Start a job if a server is free for it in the slice; else it waits."""
        at_s, origin_s, rows, service_s = job
        start_s = max(at_s, station.free_s[0])
        if start_s >= self._until_s:
            self._queues[name].append(job)
            return
        heapreplace(station.free_s, start_s + service_s)
        leaves_s = start_s + service_s * leaving_share(rows, station.servers)
        emitted = _multiplied_one(rows, station.spec.selectivity, self._rng)
        tally.work_s += service_s
        tally.busy_s += service_s
        tally.served_rows += rows
        tally.emitted_rows += emitted
        for target, part in self._network.exits[name].divide_one(emitted, self._rng):
            if part == 0:
                continue
            tally.sent_rows[target] += part
            if target in self._stations and leaves_s < self._until_s:
                heappush(self._events, (leaves_s, next(self._number), target, origin_s, part))
            else:
                self._emitted.setdefault(target, []).append((leaves_s, origin_s, part))

    def _suspend(self, name: str, station: Station) -> None:
        queue = self._queues[name]
        station.queue = _jobs([job[:3] for job in queue])
        station.services_s = np.asarray([job[3] for job in queue], dtype=np.float64)


def _listed(jobs: Jobs) -> Iterator[tuple[float, float, int]]:
    return zip(jobs.at_s.tolist(), jobs.origin_s.tolist(), jobs.rows.tolist(), strict=True)


def _jobs(parts: list[tuple[float, float, int]]) -> Jobs:
    return Jobs(
        np.asarray([part[0] for part in parts], dtype=np.float64),
        np.asarray([part[1] for part in parts], dtype=np.float64),
        np.asarray([part[2] for part in parts], dtype=np.int64),
    )


def _multiplied_one(rows: int, selectivity: float, rng: np.random.Generator) -> int:
    if selectivity == 1.0:
        return rows
    if selectivity < 1.0:
        return int(rng.binomial(rows, selectivity))
    whole, part = divmod(rows * selectivity, 1.0)
    return int(whole) + int(rng.random() < part)
