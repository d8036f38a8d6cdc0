"""Processors shared in space: every operator has its own first-come-first-served servers.

A slice of time is simulated operator by operator, upstreams first: each takes the jobs that reach
it before the slice ends, starts those a server is free for, and hands on what they emit. Operators
on a loop are simulated together, event by event. What happens does not depend on the slices.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from penstock.sim.arrivals import Stream
from penstock.sim.jobs import Jobs, merged
from penstock.sim.loops import LoopSlice
from penstock.sim.network import SINK, Network
from penstock.sim.scenario import Scenario
from penstock.sim.shuffled import station_of
from penstock.sim.station import Station
from penstock.sim.tally import Tally

CONTENTION_STEP_S = 1.0  # after which it is seen anew how many servers share the cores


class SpaceSharing:
    """All stations of a scenario."""

    def __init__(self, scenario: Scenario, network: Network, rng: np.random.Generator) -> None:
        self._network = network
        rngs = iter(rng.spawn(len(scenario.sources) + len(scenario.operators) + 1))
        self._streams = [Stream(source, scenario, next(rngs)) for source in scenario.sources]
        self.stations: dict[str, Station] = {
            spec.name: station_of(spec, scenario, next(rngs)) for spec in scenario.operators
        }
        self._exit_rng = next(rngs)
        self._results = list[Jobs]()
        self.now_s = 0.0
        self._cores = scenario.cluster.cores
        self.stretch = 1.0  # of rows that arrive now, for want of cores

    @property
    def held_rows(self) -> int:
        """Rows that arrived and are not results yet."""
        inside = sum(station.held_rows for station in self.stations.values())
        return inside + sum(jobs.total_rows for jobs in self._results)

    def resize(self, parallelism: Mapping[str, int]) -> float:
        """Give every operator its servers; returns when those taken away have finished."""
        ends_s = [
            station.resize(parallelism[name], self.now_s) for name, station in self.stations.items()
        ]
        return max(ends_s)

    def advance(self, until_s: float, tally: Tally) -> None:
        """Simulate until a moment."""
        if not self._cores:
            self._advance(until_s, tally)
        while self.now_s < until_s:
            # So many servers on fewer cores: each row takes longer by as much.
            before_s, since_s = _busy_s(tally), self.now_s
            self._advance(min(until_s, since_s + CONTENTION_STEP_S), tally)
            busy = (_busy_s(tally) - before_s) / (self.now_s - since_s)
            self.stretch = max(1.0, busy / self._cores)
            for station in self.stations.values():
                station.stretch = self.stretch

    def _advance(self, until_s: float, tally: Tally) -> None:
        for stream in self._streams:
            jobs = stream.take(until_s)
            tally.arrived_rows += jobs.total_rows
            for target, part in self._divided(stream.source.name, jobs):
                self._put(target, part)
        for names in self._network.groups:
            group = {name: self.stations[name] for name in names}
            if names in self._network.loops:
                loop = LoopSlice(group, self._network, self.now_s, until_s, self._exit_rng)
                for target, emitted in loop.serve(tally.operators):
                    self._put(target, emitted)
            else:
                for name, station in group.items():
                    counts = tally.operators[name]
                    served = station.serve(self.now_s, until_s, counts)
                    for target, part in self._divided(name, served):
                        counts.sent_rows[target] += part.total_rows
                        self._put(target, part)
        done, later = merged(self._results).split_at(until_s)
        self._results = [later] if len(later) else []
        if len(done):
            tally.results.append(done)
        self.now_s = until_s

    def _divided(self, name: str, jobs: Jobs) -> Iterator[tuple[str, Jobs]]:
        if not len(jobs):
            return
        for target, rows in self._network.exits[name].divide(jobs.rows, self._exit_rng):
            part = Jobs(jobs.at_s, jobs.origin_s, rows)
            yield target, part.where(rows > 0) if (rows == 0).any() else part

    def _put(self, target: str, jobs: Jobs) -> None:
        if target == SINK:
            self._results.append(jobs)
        else:
            self.stations[target].put(jobs)


def _busy_s(tally: Tally) -> float:
    return sum(counts.busy_s for counts in tally.operators.values())
