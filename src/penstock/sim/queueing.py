"""Processors shared in space: every operator has its own first-come-first-served servers.

A slice of time is simulated operator by operator, upstreams first: each takes the jobs that reach
it before the slice ends, starts those a server is free for, and hands on what they emit. Without
loops a slice may be as long as nothing else changes, and the result does not depend on its length;
with loops it is one step, and a row that goes round may be served out of turn within that step.
"""

from collections.abc import Mapping
from heapq import heapify, heapreplace, nsmallest

import numpy as np
from numpy.typing import NDArray

from penstock.sim.arrivals import Stream
from penstock.sim.jobs import NO_JOBS, Jobs, coalesced, merged
from penstock.sim.network import SINK, Network, multiplied
from penstock.sim.scenario import OperatorSpec, Scenario
from penstock.sim.tally import OperatorTally, Tally

Floats = NDArray[np.float64]


class Station:
    """One operator: its queue and the moments at which its servers become free."""

    def __init__(self, spec: OperatorSpec, scenario: Scenario, rng: np.random.Generator) -> None:
        self.spec = spec
        self._step_s, self._most_jobs, self._rng = scenario.step_s, scenario.jobs_per_step, rng
        self._free_s = [0.0] * spec.processors
        self._inbox = list[Jobs]()
        self._queue, self._services_s = NO_JOBS, np.empty(0)

    @property
    def servers(self) -> int:
        """How many servers it has."""
        return len(self._free_s)

    @property
    def queued_rows(self) -> int:
        """Rows that arrived and wait."""
        return self._queue.total_rows

    @property
    def held_rows(self) -> int:
        """Rows that wait here or are on their way here, in service upstream."""
        return self.queued_rows + sum(jobs.total_rows for jobs in self._inbox)

    def put(self, jobs: Jobs) -> None:
        """Rows that reach it, now or later."""
        if len(jobs):
            self._inbox.append(jobs)

    def resize(self, servers: int, now_s: float) -> float:
        """Change the number of servers; returns when the last of those removed has finished."""
        surplus = self.servers - servers
        if surplus <= 0:
            self._free_s += [now_s] * -surplus
            heapify(self._free_s)
            return now_s
        idle_first = nsmallest(surplus, self._free_s)
        for free_s in idle_first:
            self._free_s.remove(free_s)
        heapify(self._free_s)
        return max(now_s, idle_first[-1])

    def serve(self, from_s: float, until_s: float, tally: OperatorTally) -> Jobs:
        """Serve until a moment; the jobs that were started, with what they emit when they end."""
        here, later = merged(self._inbox).split_at(until_s)
        self._inbox = [later] if len(later) else []
        if len(here):
            here = coalesced(here, self._step_s, max(self._most_jobs, self.servers))
            tally.offered_rows += here.total_rows
            services_s = self.spec.service.total_s(here.rows, self._rng)
            self._services_s = np.concatenate((self._services_s, services_s))
            self._queue = Jobs(
                np.concatenate((self._queue.at_s, here.at_s)),
                np.concatenate((self._queue.origin_s, here.origin_s)),
                np.concatenate((self._queue.rows, here.rows)),
            )
        residual_s = self._residual_s(from_s)
        starts_s = self._starts_s(until_s)
        started = len(starts_s)
        services_s, jobs = self._services_s[:started], self._queue
        work_s = float(services_s.sum())
        tally.work_s += work_s
        tally.busy_s += work_s + residual_s - self._residual_s(until_s)
        served = Jobs(starts_s + services_s, jobs.origin_s[:started], jobs.rows[:started])
        self._services_s = self._services_s[started:]
        self._queue = Jobs(jobs.at_s[started:], jobs.origin_s[started:], jobs.rows[started:])
        emitted = multiplied(served.rows, self.spec.selectivity, self._rng)
        tally.served_rows += served.total_rows
        tally.emitted_rows += int(emitted.sum())
        return Jobs(served.at_s, served.origin_s, emitted)

    def _residual_s(self, now_s: float) -> float:
        return sum(free_s - now_s for free_s in self._free_s if free_s > now_s)

    def _starts_s(self, until_s: float) -> Floats:
        """When each job of the queue starts, for those that start before a moment."""
        if len(self._queue) == 0:
            return np.empty(0)
        if self.servers == 1:
            return self._single_server_starts_s(until_s)
        free_s, starts_s = self._free_s, list[float]()
        for at_s, service_s in zip(
            self._queue.at_s.tolist(), self._services_s.tolist(), strict=True
        ):
            start_s = free_s[0]
            if at_s > start_s:
                start_s = at_s
            if start_s >= until_s:
                break
            starts_s.append(start_s)
            heapreplace(free_s, start_s + service_s)
        return np.asarray(starts_s)

    def _single_server_starts_s(self, until_s: float) -> Floats:
        """Lindley's recursion in closed form: the latest of all busy periods begun so far."""
        before_s = np.cumsum(self._services_s) - self._services_s
        ready_s = self._queue.at_s - before_s
        ready_s[0] = max(ready_s[0], self._free_s[0])
        starts_s = np.maximum.accumulate(ready_s) + before_s
        starts_s = starts_s[: int(np.searchsorted(starts_s, until_s, side="left"))]
        if len(starts_s):
            self._free_s[0] = float(starts_s[-1] + self._services_s[len(starts_s) - 1])
        return starts_s


class SpaceSharing:
    """All stations of a scenario."""

    def __init__(self, scenario: Scenario, network: Network, rng: np.random.Generator) -> None:
        self._scenario, self._network = scenario, network
        rngs = iter(rng.spawn(len(scenario.sources) + len(scenario.operators) + 1))
        self._streams = [Stream(source, scenario, next(rngs)) for source in scenario.sources]
        self.stations = {
            spec.name: Station(spec, scenario, next(rngs)) for spec in scenario.operators
        }
        self._exit_rng = next(rngs)
        self._results = list[Jobs]()
        self.now_s = 0.0

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
        slice_s = self._scenario.step_s if self._network.has_loop else until_s - self.now_s
        while self.now_s < until_s:
            end_s = self.now_s + slice_s
            end_s = until_s if end_s > until_s - 1e-9 else end_s
            self._slice(end_s, tally)
            self.now_s = end_s

    def _slice(self, until_s: float, tally: Tally) -> None:
        for stream in self._streams:
            jobs = stream.take(until_s)
            tally.arrived_rows += jobs.total_rows
            self._send(stream.source.name, jobs)
        for name in self._network.order:
            station = self.stations[name]
            self._send(name, station.serve(self.now_s, until_s, tally.operators[name]))
        done, later = merged(self._results).split_at(until_s)
        self._results = [later] if len(later) else []
        if len(done):
            tally.results.append(done)

    def _send(self, name: str, jobs: Jobs) -> None:
        if not len(jobs):
            return
        for target, rows in self._network.exits[name].divide(jobs.rows, self._exit_rng):
            part = Jobs(jobs.at_s, jobs.origin_s, rows)
            if (rows == 0).any():
                part = part.where(rows > 0)
            if target == SINK:
                self._results.append(part)
            else:
                self.stations[target].put(part)
