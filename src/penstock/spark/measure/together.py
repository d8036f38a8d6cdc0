"""One Observation per period, from Spark's own metrics: progress, status store and ledger.

Nothing here touches a row. Offered rates come from the sources, work from the tasks, latency from
the ledger. A period in which no batch ended keeps what earlier batches taught about the cost of a
row, so that a batch that takes too long is seen as load and not as silence.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.control.clock import steady_s
from penstock.errors import InvalidInput, Unavailable
from penstock.model.observation import (
    BatchObservation,
    ComponentObservation,
    GroupTraffic,
    KeyGroups,
    NodeObservation,
    Observation,
    RouteObservation,
    Shuffles,
    StageWork,
)
from penstock.model.plan import Component
from penstock.spark.checkpoint.state_size import state_bytes
from penstock.spark.compile.builder import BuiltQuery
from penstock.spark.measure.batch_work import QueryWork
from penstock.spark.measure.foreign_rows import ForeignRows
from penstock.spark.measure.lane_capacities import LaneCapacities
from penstock.spark.measure.ledger import SinkBounds, summarise
from penstock.spark.measure.nodes import NodeReader
from penstock.spark.measure.progress import BatchReport
from penstock.spark.measure.query_work import WorkOfQueries, operator_rates, rows_out
from penstock.spark.measure.route_tables import RouteTableReporter
from penstock.spark.measure.running import RunningQueries
from penstock.spark.measure.service_estimate import Batch
from penstock.spark.measure.shed_rows import ShedRowsReporter
from penstock.spark.routes.frames import table_in_use
from penstock.spark.sources.control import Controls
from penstock.spark.sources.running.source import SourceRates


@dataclass
class _Learnt:
    """What earlier batches taught of a component."""

    visits: float = float("nan")  # its rows for each row of the sources
    service_time_s: float = float("nan")
    tasks: int = 0
    groups: KeyGroups | None = None


@dataclass
class _Counters:
    """Totals at the end of the last period."""

    at_s: float
    foreign_rate_per_s: float = 0.0


class SparkMeasurer:
    """The loop's Measurer over a running topology."""

    def __init__(
        self,
        running: RunningQueries,
        traffic: Callable[[], tuple[GroupTraffic, ...]] | None = None,
        share: float | None = None,
    ) -> None:
        """`traffic` gives the bytes between key groups, where anyone wants to know.

        `share` of the results must keep the bound: that of the topology unless given.
        """
        self._running = running
        self._share = running.topology.share if share is None else share
        self._traffic = traffic
        self._session: SparkSession = running.session
        self._work = WorkOfQueries(running)
        self._learnt: dict[str, _Learnt] = {}
        # Tasks and progress of a batch may come in different periods, so this is of the newest of
        # which both are known.
        self._overhead_s = float("nan")
        self._nodes = NodeReader(self._session)
        self._tables = RouteTableReporter(
            running.routes_folder,
            {s.name: s.route.method for s in running.built.topology.sources if s.route is not None},
        )
        self._last = _Counters(steady_s())
        self._sources = SourceRates(running.inputs)
        self._sources.take(time.time())
        self._shed = ShedRowsReporter()
        self._foreign = ForeignRows()
        self._lanes = LaneCapacities(Controls(running.sources.folder), running.inputs)

    def observe(self) -> Observation | None:
        now_s, wall_s = steady_s(), time.time()  # sources stamp by the machine's clock
        period_s = now_s - self._last.at_s
        if period_s <= 0:
            return None
        running, missing = self._running, list[str]()
        reports = running.reports.take()
        entries = running.ledger.take()
        bounds = SinkBounds.of(running.topology, (q.plan for q in running.built.queries))
        works = self._work.take(missing)
        reported_per_s, unseen_rows = self._sources.take(wall_s)
        if np.isnan(reported_per_s):
            missing.append("arrival rate: a source has not counted twice yet")
        arrival_rate_per_s = reported_per_s + self._foreign_rate(reports, period_s, missing)
        nodes = self._nodes.take(missing)
        components, overheads_s = [], list[float]()
        stages: dict[str, tuple[StageWork, ...]] = {}
        slots = sum(node.slots for node in nodes)
        for query in running.built.queries:
            name = query.plan.name
            for measured, work in self._work.paired(name, reports, works.get(name)):
                self._learn(query, measured, work)
                overheads_s += [overhead_s(measured, work, slots)]
                stages[name] = tuple(stages_of(measured[-1], work))
            components += [
                self._component(component, arrival_rate_per_s, period_s, nodes, works)
                for component in query.plan.components
            ]
        self._tell_lanes(missing)
        if not np.isnan(overheads_s).all():
            self._overhead_s = float(np.nanmean(overheads_s))
        if any(np.isnan(c.service_time_s) for c in components):
            missing.append("service times: no batch has been measured yet")
        traffic = self._seen_traffic(missing)
        routes = tuple(_routes(works, running.queries))
        self._last.at_s = now_s
        return Observation(
            at_s=now_s,
            period_s=period_s,
            arrival_rate_per_s=arrival_rate_per_s,
            rate_age_s=unseen_rows / reported_per_s if reported_per_s > 0 else 0.0,
            backlog_rows=max(0.0, running.backlog(wall_s) + unseen_rows)
            + max(self._foreign.waiting.values(), default=0),
            operators=operator_rates(running.built.queries, reports, period_s),
            components=tuple(components),
            nodes=nodes,
            latency=summarise(entries, running.topology.max_latency_s, bounds, self._share),
            sinks=bounds.observed(entries, self._share),
            batches=_batches(reports, self._overhead_s),
            routes=routes,
            sources=running.sources.observe(),
            missing=tuple(missing),
            traffic=traffic,
            shuffles=_shuffles(works),
            stages=tuple(one for found in stages.values() for one in found),
            decided=(
                *self._tables.take(routes, now_s),
                *self._shed.take(running.shed_rows(), arrival_rate_per_s * period_s, now_s),
            ),
        )

    def _tell_lanes(self, missing: list[str]) -> None:
        try:
            self._lanes.tell()
        except (OSError, InvalidInput) as reason:
            missing.append(f"capacity of lanes: {reason}")

    def _seen_traffic(self, missing: list[str]) -> tuple[GroupTraffic, ...]:
        try:
            return self._traffic() if self._traffic is not None else ()
        except Unavailable as reason:
            missing.append(f"traffic: {reason}")
            return ()

    def _foreign_rate(
        self, reports: list[BatchReport], period_s: float, missing: list[str]
    ) -> float:
        """Rows a second from sources that do not report what arrived, as far as batches show.

        Of those that do not tell what they have left, nothing waits but what came since the last
        batch.
        """
        if all(source.counts_arrivals for source in self._running.inputs.values()):
            return 0.0
        if reports:
            # Queries that read the same sources report the same rows.
            came = self._foreign.came(reports)
            self._last.foreign_rate_per_s = max(came.values()) / period_s
        else:
            missing.append("arrival rate: no batch ended in this period")
        return self._last.foreign_rate_per_s

    def _learn(self, query: BuiltQuery, measured: list[BatchReport], work: QueryWork) -> None:
        """Cost and visits of each component from the batches whose work is known."""
        rows = sum(report.rows for report in measured)
        if rows == 0:
            return
        for component in query.plan.components:
            learnt = self._learnt.setdefault(component.name, _Learnt())
            came = sum(_input_rows(report, component, query) for report in measured)
            learnt.visits = came / rows
            if came > 0:
                learnt.service_time_s = work.busy_s.get(component.name, 0.0) / came
            learnt.tasks = work.tasks.get(component.name, learnt.tasks)
            busy_s = work.busy_s.get(component.name, 0.0)
            self._lanes.learn(component.name, Batch(came, learnt.tasks * len(measured), busy_s))
            group = work.groups.get(component.name)
            if group is not None and len(group.run_time_s):
                scale = len(measured)
                sizes = state_bytes(
                    self._running.checkpoint_of(query), group.stateful, len(group.run_time_s)
                )
                learnt.groups = KeyGroups(group.run_time_s * scale, sizes, group.executor)

    def _component(
        self,
        component: Component,
        arrival_rate_per_s: float,
        period_s: float,
        nodes: tuple[NodeObservation, ...],
        works: dict[str, QueryWork],
    ) -> ComponentObservation:
        learnt = self._learnt.get(component.name, _Learnt())
        busy = sum(work.busy_s.get(component.name, 0.0) for work in works.values())
        return ComponentObservation(
            name=component.name,
            operators=component.operators,
            arrival_rate_per_s=arrival_rate_per_s * learnt.visits,
            service_time_s=learnt.service_time_s,
            parallelism=sum(node.slots for node in nodes if not node.draining),
            busy_s=busy,
            tasks=learnt.tasks,
            reserved_cpu=self._running.topology.reserved_cpu(component.operators),
            reserved_memory_bytes=self._running.topology.reserved_memory_bytes(component.operators),
            key_groups=learnt.groups,
        )


def _shuffles(works: dict[str, QueryWork]) -> Shuffles | None:
    """Of a batch of all queries; None in a period in which none ended."""
    if not works:
        return None
    sent = [work.shuffles for work in works.values()]
    return Shuffles(sum(one.rows for one in sent), sum(one.size_bytes for one in sent))


def stages_of(newest: BatchReport, work: QueryWork) -> Iterable[StageWork]:
    """The stages of a batch with rows, each with the time that Spark reports of its state."""
    for one in work.stages if newest.rows else ():
        if all(place < len(newest.state_s) for place in one.reported):
            state_s = sum(newest.state_s[place] for place in one.reported)
            yield StageWork(one.component, one.tasks, one.rows, one.task_s, one.run_s, state_s)


def _input_rows(report: BatchReport, component: Component, query: BuiltQuery) -> int:
    """Rows that entered a component: what its first operator took, or what its source read."""
    if component.name not in query.edges:
        return rows_out(report, component.name)
    return sum(rows_out(report, upstream) for upstream in query.edges[component.name])


def _routes(
    works: dict[str, QueryWork], queries: list[StreamingQuery]
) -> Iterable[RouteObservation]:
    """The load of each route in the newest batch, if one ended in this period."""
    for query in queries:
        work = works.get(query.name)
        for source, load in work.routes.items() if work is not None else ():
            table = table_in_use(query.lastProgress, source)
            yield RouteObservation(source, load.run_time_s, load.rows, table)


def overhead_s(reports: Sequence[BatchReport], work: QueryWork, slots: int) -> float:
    """What the batches of some work took beyond it on all processors; NaN if none had rows."""
    filled = [report.duration_s for report in reports if report.rows > 0]
    if not filled:
        return float("nan")
    return max(0.0, (sum(filled) - work.total_busy_s / max(slots, 1)) / len(filled))


def _batches(reports: list[BatchReport], mean_overhead_s: float) -> BatchObservation | None:
    filled = [report for report in reports if report.rows > 0]
    if not filled:
        return None
    return BatchObservation(
        count=len(filled),
        mean_duration_s=float(np.mean([report.duration_s for report in filled])),
        mean_overhead_s=mean_overhead_s,
        mean_rows=float(np.mean([report.rows for report in filled])),
    )
