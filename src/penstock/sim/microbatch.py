"""Processors shared in time: micro-batches, each using all K processors for all operators.

A batch takes all rows that arrived before it began, B = O(K) + work / K seconds long. Back to back,
a load of lambda rows per second, each S processor-seconds, has B = O / (1 - lambda S / K) in the
mean (the `microbatch` model); with a trigger interval, a batch begins at the next multiple of it.
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from penstock.sim.arrivals import Stream
from penstock.sim.jobs import NO_JOBS, Ints, Jobs, merged
from penstock.sim.network import SINK, Network, multiplied
from penstock.sim.scenario import Scenario
from penstock.sim.tally import Batch, OperatorTally, Tally


@dataclass(frozen=True)
class _Running:
    """The batch under way, and what it will have done when it ends."""

    batch: Batch
    end_s: float
    operators: dict[str, OperatorTally]
    results: Jobs
    input_rows: int


class TimeSharing:
    """A stream of micro-batches."""

    def __init__(
        self,
        scenario: Scenario,
        network: Network,
        rng: np.random.Generator,
        processors_at: Callable[[float], int],
        slowed_s_at: Callable[[float], float],
        stretch_at: Callable[[float, dict[str, float]], float] | None = None,
    ) -> None:
        """What batches cost that begin at a moment: processors, seconds that starts add, placement.

        `stretch_at` gives the last one for the work of operators.
        """
        self._stretch_at, self._slowed_s_at = stretch_at, slowed_s_at
        self.owed_s = 0.0  # what moving key groups adds to the next batch
        self.interval_s, self.shed, self.cheaper = 0.0, 0.0, frozenset[str]()  # the latest orders
        self.forms: dict[str, str] = {}  # likewise
        self.shed_rows = 0
        self._scenario, self._network, self._processors_at = scenario, network, processors_at
        *source_rngs, self._rng = rng.spawn(len(scenario.sources) + 1)
        self._streams = [
            Stream(source, scenario, stream)
            for source, stream in zip(scenario.sources, source_rngs, strict=True)
        ]
        self._waiting = {source.name: NO_JOBS for source in scenario.sources}
        self._running: _Running | None = None
        self._free_s = 0.0  # when the next batch may begin
        self.now_s = 0.0

    @property
    def held_rows(self) -> int:
        """Rows that arrived and are in no committed batch."""
        waiting = sum(jobs.total_rows for jobs in self._waiting.values())
        return waiting + (self._running.input_rows if self._running else 0)

    @property
    def busy_until_s(self) -> float:
        """When the batch under way ends."""
        return self._running.end_s if self._running else self.now_s

    def advance(self, until_s: float, tally: Tally) -> None:
        """Simulate until a moment."""
        self._arrive(until_s, tally)
        while True:
            if self._running is None:
                start_s = self._next_start()
                if start_s > until_s:
                    break
                self._running = self._begun(start_s)
            self._spend(self._running, until_s, tally)
            if self._running.end_s > until_s:
                break
            self._commit(self._running, tally)
        self.now_s = until_s

    def _arrive(self, until_s: float, tally: Tally) -> None:
        for stream in self._streams:
            jobs, name = stream.take(until_s), stream.source.name
            tally.arrived_rows += jobs.total_rows
            if len(jobs):
                self._waiting[name] = merged([self._waiting[name], jobs])

    def _next_start(self) -> float:
        """When the next batch begins: once it may and there is a row for it; inf if there is none.

        An engine that finds no new rows runs no batch.
        """
        first_s = min(
            (float(jobs.at_s[0]) for jobs in self._waiting.values() if len(jobs)), default=math.inf
        )
        trigger_s = self._trigger_s
        if first_s <= self._free_s or math.isinf(first_s) or trigger_s == 0:
            return max(first_s, self._free_s)
        return max(self._free_s, trigger_s * math.ceil(first_s / trigger_s))

    def _begun(self, start_s: float) -> _Running:
        """Admit what waits and find out how long it takes."""
        tallies = {name: OperatorTally() for name in self._network.operators}
        results, input_rows = list[Jobs](), 0
        for source, waiting in self._waiting.items():
            jobs, self._waiting[source] = waiting.split_at(math.nextafter(start_s, math.inf))
            jobs = self._kept(jobs)
            input_rows += jobs.total_rows
            results.append(self._through(source, jobs, tallies))
        work_s = 0.0
        for name, tally in tallies.items():
            operator = self._network.operators[name]
            if tally.served_rows:
                tally.work_s = operator.service.one_s(tally.served_rows, self._rng)
            form = dict(operator.forms).get(self.forms.get(name, ""), 1.0)
            tally.work_s *= operator.cheaper if name in self.cheaper else form
            work_s += tally.work_s
        processors = self._processors_at(start_s)
        overhead_s = self._scenario.batch.overhead_at(start_s, processors)
        overhead_s += self._slowed_s_at(start_s)
        stretch = 1.0
        if self._stretch_at is not None:
            stretch = self._stretch_at(start_s, {n: tally.work_s for n, tally in tallies.items()})
        duration_s = overhead_s + work_s / processors * stretch + self.owed_s
        self.owed_s = 0.0
        end_s = start_s + duration_s
        done = merged(results)
        done = Jobs(np.full(len(done), end_s), done.origin_s, done.rows)
        batch = Batch(start_s, duration_s, overhead_s, input_rows)
        return _Running(batch, end_s, tallies, done, input_rows)

    def _kept(self, jobs: Jobs) -> Jobs:
        """What is left of rows when a share of them is shed by chance."""
        if self.shed == 0 or not len(jobs):
            return jobs
        left = self._rng.binomial(jobs.rows, 1 - self.shed)
        self.shed_rows += int(jobs.rows.sum() - left.sum())
        return Jobs(jobs.at_s, jobs.origin_s, left).where(left > 0)

    @property
    def _trigger_s(self) -> float:
        return max(self.interval_s, self._scenario.batch.trigger_s)

    def _through(self, source: str, jobs: Jobs, tallies: dict[str, OperatorTally]) -> Jobs:
        """Pass one source's rows through the graph, counting; what comes out at the sinks."""
        none = np.zeros(len(jobs), dtype=np.int64)
        rows_at = dict[str, Ints]()
        self._pass_on(source, jobs.rows, rows_at, Counter())
        for name in self._network.order:
            served = rows_at.get(name, none)
            emitted = multiplied(served, self._network.operators[name].selectivity, self._rng)
            count = int(served.sum())
            tallies[name].offered_rows += count
            tallies[name].served_rows += count
            tallies[name].emitted_rows += count if emitted is served else int(emitted.sum())
            self._pass_on(name, emitted, rows_at, tallies[name].sent_rows)
        done = rows_at.get(SINK, none)
        return Jobs(jobs.at_s, jobs.origin_s, done).where(done > 0)

    def _pass_on(
        self, name: str, rows: Ints, rows_at: dict[str, Ints], sent: Counter[str]
    ) -> None:  # fmt: skip
        for target, part in self._network.exits[name].divide(rows, self._rng):
            sent[target] += int(part.sum())
            rows_at[target] = rows_at[target] + part if target in rows_at else part

    def _spend(self, running: _Running, until_s: float, tally: Tally) -> None:
        """Count the part of a batch's work that falls between now and a moment."""
        start_s = max(running.batch.start_s, self.now_s)
        share = (min(running.end_s, until_s) - start_s) / running.batch.duration_s
        for name, done in running.operators.items():
            tally.operators[name].busy_s += share * done.work_s

    def _commit(self, running: _Running, tally: Tally) -> None:
        tally.batches.append(running.batch)
        if len(running.results):
            tally.results.append(running.results)
        for name, done in running.operators.items():
            total = tally.operators[name]
            total.offered_rows += done.offered_rows
            total.served_rows += done.served_rows
            total.emitted_rows += done.emitted_rows
            total.sent_rows += done.sent_rows
            total.work_s += done.work_s
        self._free_s = running.end_s
        if trigger_s := self._trigger_s:
            # A trigger that fired while the batch was under way starts the next one as it ends.
            fired = math.floor(running.batch.start_s / trigger_s + 1e-9) + 1
            self._free_s = max(running.end_s, trigger_s * fired)
        self._running = None
