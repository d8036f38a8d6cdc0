"""One Observation per period of components that run apart, each with a queue of its own."""

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean

import numpy as np

from penstock.control.clock import steady_s
from penstock.errors import PenstockError
from penstock.model.observation import ComponentObservation, Flows, KeyGroups, Observation
from penstock.spark.channels.entries import Entry
from penstock.spark.compile.apart_split import Part
from penstock.spark.measure.batch_work import QueryWork
from penstock.spark.measure.cpu_shares import NodeTime, task_cpus
from penstock.spark.measure.flows import Flow
from penstock.spark.measure.foreign_rows import ForeignRows
from penstock.spark.measure.ledger import SinkBounds, summarise
from penstock.spark.measure.nodes import NodeReader
from penstock.spark.measure.progress import BatchReport
from penstock.spark.measure.query_work import WorkOfQueries, operator_rates
from penstock.spark.measure.running import RunningComponents
from penstock.spark.measure.service_estimate import Batch, ServiceEstimate

MOST_SCV = 50.0
LEAST_ENTRIES = 3
BULKS = 50  # that tell how rows come to a queue


class ApartMeasurer:
    """The loop's Measurer over components that run apart."""

    def __init__(
        self,
        running: RunningComponents,
        held: Callable[[], Mapping[str, KeyGroups]] = dict,
        share: float | None = None,
    ) -> None:
        """`held` gives the key groups of components in their newest batch, where they are read.

        `share` of the results must keep the bound: that of the topology unless given.
        """
        self._running, self._held = running, held
        self._share = running.topology.share if share is None else share
        self._work = WorkOfQueries(running)
        self._nodes = NodeReader(running.session)
        self._services = {query.plan.name: ServiceEstimate() for query in running.built.queries}
        self._published = running.published()
        self._flows = {part.component.name: Flow() for part in running.apart.parts}
        self._served = {part.component.name: Flow() for part in running.apart.parts}
        self._channels = {operator: Flow() for operator in self._published}
        self._tasks: dict[str, int] = {}  # of the newest batch that was seen
        self._batches: dict[str, tuple[float, float]] = {}  # seconds and rows, of the newest ones
        self._foreign = ForeignRows()
        self._node_times: dict[str, dict[str, NodeTime]] = {}  # of each component's newest batch
        self._at_s = steady_s()
        self._available = self._arrived(time.time())

    def observe(self) -> Observation | None:
        now_s, wall_s = steady_s(), time.time()  # sources stamp by the machine's clock
        period_s = now_s - self._at_s
        if period_s <= 0:
            return None
        running, missing = self._running, list[str]()
        reports = self._running.reports.take()
        works = self._work.take(missing)
        available, published = self._arrived(wall_s), self._running.published()
        for name, service in self._services.items():
            for measured, work in self._work.paired(name, reports, works.get(name)):
                tasks = sum(work.tasks.values()) * len(work.batches)
                service.add(Batch(sum(r.rows for r in measured), tasks, work.total_busy_s))
        rows = {name: sum(r.rows for r in reports if r.query == name) for name in self._services}
        self._batches |= _mean_batches(reports)
        # What waited when a source first counted may have come at any time.
        new = {s: count - self._available.get(s, count) for s, count in available.items()}
        others = self._foreign.came(reports)
        for part in running.apart.parts:
            came = others.get(part.query, 0)
            came += sum(new.get(s.name, 0) for s in part.topology.sources)
            came += sum(published[op] - self._published[op] for op in part.inputs.values())
            mine = works.get(part.query)
            busy_s = 0.0 if mine is None else mine.total_busy_s
            self._flows[part.component.name].add(now_s, period_s, came, busy_s)
            self._served[part.component.name].add(now_s, period_s, rows[part.query])
            if mine is not None:
                self._node_times[part.component.name] = mine.nodes
        for operator, flow in self._channels.items():
            sent = published[operator] - self._published[operator]
            flow.add(now_s, period_s, sent)
        nodes = self._nodes.take(missing)
        cpus = task_cpus(
            self._node_times,
            {name: flow.busy_share for name, flow in self._flows.items()},
            {node.name: node.slots for node in nodes},
        )
        held = self._key_groups(reports, missing)
        components = tuple(
            replace(
                self._component(part, works.get(part.query), period_s, wall_s),
                cpu=cpus.get(part.component.name, ()),
                key_groups=held.get(part.component.name),
            )
            for part in running.apart.parts
        )
        missing += [
            f"service time of {one.name}" for one in components if np.isnan(one.service_time_s)
        ]
        arrived = sum(new.values())
        arrived += sum(others.values())
        self._at_s, self._available, self._published = now_s, available, published
        entries = running.ledger.take()
        bounds = SinkBounds.of(running.topology, (q.plan for q in running.built.queries))
        return Observation(
            at_s=now_s,
            period_s=period_s,
            arrival_rate_per_s=arrived / period_s,
            backlog_rows=float(
                max(0, running.backlog(wall_s)) + sum(self._foreign.waiting.values())
            ),
            operators=operator_rates(running.built.queries, reports, period_s),
            components=components,
            nodes=nodes,
            latency=summarise(entries, running.topology.max_latency_s, bounds, self._share),
            sinks=bounds.observed(entries, self._share),
            sources=running.sources.observe(),
            missing=tuple(missing),
            flows=self._between_components(),
        )

    def _key_groups(
        self, reports: Sequence[BatchReport], missing: list[str]
    ) -> dict[str, KeyGroups]:
        """Their load in the period; the newest batch stands for all."""
        try:
            held = self._held()
        except PenstockError as reason:
            missing.append(f"key groups: {reason}")
            return {}
        query = {part.component.name: part.query for part in self._running.apart.parts}
        ran = Counter(report.query for report in reports)
        return {
            name: replace(groups, load_s=groups.load_s * ran[query[name]])
            for name, groups in held.items()
        }

    def _between_components(self) -> Flows:
        """What went through channels: each of its readers gets all of an operator's rows."""
        parts = self._running.apart.parts
        home = {op: part.component.name for part in parts for op in part.component.operators}
        sent: dict[tuple[str, str], float] = {}
        for part in parts:
            for operator in dict.fromkeys(part.inputs.values()):
                edge = (home[operator], part.component.name)
                sent[edge] = sent.get(edge, 0.0) + self._channels[operator].rows_per_s
        return Flows(tuple(sent), tuple(sent.values()))

    def _arrived(self, now_s: float) -> dict[str, int]:
        counts = {name: s.counted(now_s) for name, s in self._running.inputs.items()}
        return {name: count[0] for name, count in counts.items() if count is not None}

    def _component(
        self, part: Part, work: QueryWork | None, period_s: float, wall_s: float
    ) -> ComponentObservation:
        name, running = part.component.name, self._running
        flow = self._flows[name]
        if work is not None:
            self._tasks[name] = sum(work.tasks.values())
        waits = running.channel_backlog(name) + running.source_backlog(name, wall_s)
        waits += self._foreign.waiting.get(part.query, 0)
        service = self._services[part.query].service()
        return ComponentObservation(
            name=name,
            operators=part.component.operators,
            arrival_rate_per_s=flow.rows_per_s,
            service_time_s=service.row_s,
            parallelism=running.parallelism()[name],
            busy_s=flow.busy_share * period_s,
            backlog_rows=float(max(0, waits)),
            arrival_scv=self._arrival_scv(part),
            service_scv=service.scv,
            tasks=self._tasks.get(name, 0),
            batch_s=self._batches.get(part.query, (math.nan, math.nan))[0],
            batch_rows=self._batches.get(part.query, (math.nan, math.nan))[1],
            served_rate_per_s=self._served[name].rows_per_s,
            reserved_cpu=running.topology.reserved_cpu(part.component.operators),
            reserved_memory_bytes=running.topology.reserved_memory_bytes(part.component.operators),
        )

    def _arrival_scv(self, part: Part) -> float:
        """Of the times between rows at its queue: those that are published together come at once.

        Where rows come evenly nothing is added; how they come from other sources is not known.
        """
        if not part.inputs:
            sources = [self._running.inputs[s.name] for s in part.topology.sources]
            return 0.0 if all(one.comes_evenly for one in sources) else 1.0
        entries: list[Entry] = []
        for operator in dict.fromkeys(part.inputs.values()):
            entries += since_clock_was_set(self._running.last_published(operator, BULKS))
        return scv_of_bulks(sorted(entries, key=lambda entry: entry.at_s)[-BULKS:])


def _mean_batches(reports: Sequence[BatchReport]) -> dict[str, tuple[float, float]]:
    """Seconds and rows of the batches of each query that had any rows."""
    found: dict[str, list[tuple[float, int]]] = {}
    for report in reports:
        if report.rows > 0:
            found.setdefault(report.query, []).append((report.duration_s, report.rows))
    return {
        query: (fmean(seconds for seconds, _ in batches), fmean(rows for _, rows in batches))
        for query, batches in found.items()
    }


def since_clock_was_set(entries: Sequence[Entry]) -> Sequence[Entry]:
    """Entries in the order of their publication, without those before the clock was set back."""
    begins = [
        place
        for place, (before, entry) in enumerate(pairwise(entries), start=1)
        if entry.at_s < before.at_s
    ]
    return entries[begins[-1] :] if begins else entries


def scv_of_bulks(entries: Sequence[Entry]) -> float:
    """Squared coefficient of variation of times between rows that come in bulks; 1 if unknown.

    With gaps d between bulks of n rows, the mean gap of rows is D / N and the mean square of them
    is sum d^2 / N, as all but one row of a bulk come with no gap.
    """
    if len(entries) < LEAST_ENTRIES:
        return 1.0
    at_s = np.array([entry.at_s for entry in entries])
    rows = float(sum(entry.rows for entry in entries[1:]))
    span_s = float(at_s[-1] - at_s[0])
    if span_s <= 0 or rows <= 0:
        return 1.0
    square = float(np.sum(np.diff(at_s) ** 2)) / rows
    return min(max(square / (span_s / rows) ** 2 - 1.0, 0.0), MOST_SCV)
