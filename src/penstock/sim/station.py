"""One operator with servers of its own: a first-come-first-served G/G/k queue."""

import math
from collections.abc import Iterator
from heapq import heapify, heapreplace, nsmallest
from typing import overload

import numpy as np
from numpy.typing import NDArray

from penstock.sim.jobs import NO_JOBS, Jobs, coalesced, merged, separated
from penstock.sim.network import multiplied
from penstock.sim.scenario import OperatorSpec, Scenario
from penstock.sim.tally import OperatorTally

Floats = NDArray[np.float64]

READ_AHEAD = 4096


@overload
def leaving_share(rows: int, servers: int) -> float: ...
@overload
def leaving_share(rows: NDArray[np.int64], servers: int) -> Floats: ...
def leaving_share(rows: int | NDArray[np.int64], servers: int) -> float | Floats:
    """The share of a job's service after which its mean row leaves; 1 for a job of one row.

    A job stands for rows that really come one after another and find all servers, so a row leaves
    after its own service and half of the other rows' share of one server's time: n rows of s
    seconds on k servers leave s + (n - 1) s / 2k after the job starts. The server that stands for
    them all is busy for n s.
    """
    return (1.0 + (rows - 1) / (2.0 * servers)) / rows


class Station:
    """One operator: its queue and the moments at which its servers become free."""

    def __init__(self, spec: OperatorSpec, scenario: Scenario, rng: np.random.Generator) -> None:
        self.spec = spec
        self._step_s, self._most_jobs, self.rng = scenario.step_s, scenario.jobs_per_step, rng
        self._pause_s = scenario.cluster.pause_s
        self.stretch = 1.0  # by how much rows take longer for want of cores
        self.free_s = [0.0] * spec.processors
        self._last_ends_s = list[float]()  # of servers taken away, or paused, while busy
        self._paused_until_s = -math.inf
        self._inbox = list[Jobs]()
        self.queue, self.services_s = NO_JOBS, np.empty(0)

    @property
    def servers(self) -> int:
        """How many servers it has."""
        return len(self.free_s)

    @property
    def queued_rows(self) -> int:
        """Rows that arrived and wait."""
        return self.queue.total_rows

    @property
    def held_rows(self) -> int:
        """Rows that wait here or are on their way here, in service upstream."""
        return self.queued_rows + sum(jobs.total_rows for jobs in self._inbox)

    def put(self, jobs: Jobs) -> None:
        """Rows that reach it, now or later."""
        if len(jobs):
            self._inbox.append(jobs)

    def arrived(self, until_s: float) -> Jobs:
        """Take the rows that reach it before a moment."""
        here, later = merged(self._inbox).split_at(until_s)
        self._inbox = [later] if len(later) else []
        return separated(here, self._step_s, self._most_jobs)

    def resize(self, servers: int, now_s: float) -> float:
        """Change the number of servers; returns when the last of those removed has finished."""
        surplus = self.servers - servers
        if surplus == 0:
            return now_s
        gone = nsmallest(max(0, surplus), self.free_s)
        for free_s in gone:
            self.free_s.remove(free_s)
        self.free_s += [now_s] * -surplus
        still_busy = [free_s for free_s in gone if self._busy(free_s, now_s)]
        self._last_ends_s += still_busy
        self.pause(now_s)
        heapify(self.free_s)
        return max(still_busy, default=now_s)

    def _busy(self, free_s: float, now_s: float) -> bool:
        """Whether a server that becomes free then works now, and does not only pause."""
        return free_s > max(now_s, self._paused_until_s)

    def pause(self, now_s: float) -> None:
        """Let no server start a row for a while; those at work end what they began."""
        if not self._pause_s > 0:
            return
        until_s = now_s + self._pause_s
        self._last_ends_s += [
            free_s for free_s in self.free_s if self._busy(free_s, now_s) and free_s <= until_s
        ]
        self._paused_until_s = until_s
        self.free_s = [max(free_s, until_s) for free_s in self.free_s]

    def serve(self, from_s: float, until_s: float, tally: OperatorTally) -> Jobs:
        """Serve until a moment; the jobs that were started, with what they emit when they end."""
        here = self.arrived(until_s)
        if len(here):
            here = coalesced(here, self._step_s, max(self._most_jobs, self.servers))
            tally.offered_rows += here.total_rows
            services_s = self.stretch * self.spec.service.total_s(here.rows, self.rng)
            self.services_s = np.concatenate((self.services_s, services_s))
            self.queue = Jobs(
                np.concatenate((self.queue.at_s, here.at_s)),
                np.concatenate((self.queue.origin_s, here.origin_s)),
                np.concatenate((self.queue.rows, here.rows)),
            )
        before_s = self.residual_s(from_s)
        starts_s = self._starts_s(until_s)
        started = len(starts_s)
        services_s, jobs = self.services_s[:started], self.queue
        work_s = float(services_s.sum())
        tally.work_s += work_s
        tally.busy_s += work_s + before_s - self.residual_s(until_s)
        rows = jobs.rows[:started]
        leaves_s = starts_s + services_s * leaving_share(rows, self.servers)
        served = Jobs(leaves_s, jobs.origin_s[:started], rows)
        self.services_s = self.services_s[started:]
        self.queue = Jobs(jobs.at_s[started:], jobs.origin_s[started:], jobs.rows[started:])
        emitted = multiplied(served.rows, self.spec.selectivity, self.rng)
        tally.served_rows += served.total_rows
        tally.emitted_rows += int(emitted.sum())
        return Jobs(served.at_s, served.origin_s, emitted)

    def residual_s(self, now_s: float) -> float:
        """Service that rows started before a moment still need."""
        self._last_ends_s = [end_s for end_s in self._last_ends_s if end_s > now_s]
        kept_s = sum(free_s - now_s for free_s in self.free_s if self._busy(free_s, now_s))
        return kept_s + sum(end_s - now_s for end_s in self._last_ends_s)

    def _starts_s(self, until_s: float) -> Floats:
        """When each job of the queue starts, for those that start before a moment."""
        if len(self.queue) == 0:
            return np.empty(0)
        if self.servers == 1:
            return self._single_server_starts_s(until_s)
        free_s, starts_s = self.free_s, list[float]()
        for at_s, service_s in self._waiting():
            start_s = free_s[0]
            if at_s > start_s:
                start_s = at_s
            if start_s >= until_s:
                break
            starts_s.append(start_s)
            heapreplace(free_s, start_s + service_s)
        return np.asarray(starts_s)

    def _waiting(self) -> Iterator[tuple[float, float]]:
        """Arrival and service of the jobs in the queue, read only as far as they are used."""
        for first in range(0, len(self.queue), READ_AHEAD):
            part = slice(first, first + READ_AHEAD)
            yield from zip(
                self.queue.at_s[part].tolist(), self.services_s[part].tolist(), strict=True
            )

    def _single_server_starts_s(self, until_s: float) -> Floats:
        """Lindley's recursion in closed form: the latest of all busy periods begun so far."""
        before_s = np.cumsum(self.services_s) - self.services_s
        ready_s = self.queue.at_s - before_s
        ready_s[0] = max(ready_s[0], self.free_s[0])
        starts_s = np.maximum.accumulate(ready_s) + before_s
        starts_s = starts_s[: int(np.searchsorted(starts_s, until_s, side="left"))]
        if len(starts_s):
            self.free_s[0] = float(starts_s[-1] + self.services_s[len(starts_s) - 1])
        return starts_s
