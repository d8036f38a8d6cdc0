"""How much work each component did in a period, from the tasks of its batches.

All stages of a period count with their total run time. Task by task only the newest batch is read:
its tasks say how a stage's time divides among the components in it, and how key groups compare.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.model.observation import Floats, Ints, Shuffles
from penstock.model.plan import QueryPlan
from penstock.spark import handles
from penstock.spark.handles import (
    BatchExecution,
    Family,
    JobInfo,
    StageInfo,
    StagePart,
    TaskColumns,
    Texts,
)
from penstock.spark.measure.cpu_shares import NodeTime, node_times
from penstock.spark.measure.stage_owners import OwnedPart, owned_parts

log = logging.getLogger(__name__)
Positions = np.ndarray[tuple[int], np.dtype[np.int64]]
TaskGroups = Sequence[Sequence[int]]  # the key groups of each task of a stage


@dataclass(frozen=True)
class GroupLoad:
    """The newest batch's tasks of a stateful component, by key group.

    A stage that is repeated in part, after a loss, leaves out what it need not repeat: what was
    known before stays.
    """

    run_time_s: Floats
    executor: Texts
    stateful: tuple[int, ...]
    joins: tuple[int, ...] = ()


@dataclass(frozen=True)
class RouteLoad:
    """The newest batch's tasks behind a routed source, by route."""

    run_time_s: Floats
    rows: Ints


@dataclass(frozen=True)
class StageTime:
    """The newest batch's tasks of one part of the plan."""

    component: str
    tasks: int
    rows: int  # that they read from shuffles
    task_s: float  # all of them, from launch to end
    run_s: float
    reported: tuple[int, ...]  # places in a progress of the state they hold


@dataclass(frozen=True)
class QueryWork:
    """What one query's tasks did in a period."""

    busy_s: dict[str, float]  # by component
    tasks: dict[str, int]  # of the newest batch, by component
    groups: dict[str, GroupLoad]
    batches: frozenset[int]
    routes: dict[str, RouteLoad] = field(default_factory=dict)  # by source
    nodes: dict[str, NodeTime] = field(default_factory=dict)  # of the newest batch
    remote_bytes: int = 0  # that tasks of the newest batch read from other hosts
    remote_wait_s: float = 0.0  # for them
    shuffles: Shuffles = field(default_factory=lambda: Shuffles(0.0, 0.0))  # of all batches
    stages: tuple[StageTime, ...] = ()

    @property
    def total_busy_s(self) -> float:
        """Over all components."""
        return sum(self.busy_s.values())


class WorkReader:
    """Follows the jobs of one query."""

    def __init__(
        self, session: SparkSession, query: StreamingQuery, plan: QueryPlan | None,
        grouping: Callable[[int], TaskGroups | None] = lambda _: None,
    ) -> None:  # fmt: skip
        """Without a plan, components are the parts of the query that hold state.

        `grouping` says which key groups the tasks of a batch worked on, if not one each.
        """
        self._grouping = grouping
        components = plan.components if plan is not None else ()
        self._session = session
        self._query = query
        self._component_of = {
            name: component.name
            for component in components
            for name in (component.name, *component.operators)
        }
        sources = [c.name for c in components if c.name not in c.operators]
        self._lone_source = sources[0] if len(sources) == 1 else None
        self._last_job = -1
        self._unavailable = handles.why_unavailable(
            session, Family.READ_TASKS, Family.READ_BATCH_PLANS
        )
        if self._unavailable:
            log.warning("the work of components is not measured: %s", self._unavailable)
        self._curious = not self._unavailable
        self._seen: tuple[int, list[OwnedPart]] | None = None  # a batch, and its plan
        self._looked = -1  # the newest batch that ended while somebody was there to look
        # A query's plan has one shape, so what the n-th of so many stages does is learnt once.
        self._by_rank: dict[int, list[list[OwnedPart]]] = {}
        self._groups: dict[str, GroupLoad] = {}

    @property
    def curious(self) -> bool:
        """Whether a plan is wanted: `look` at a batch before `take` reads its jobs."""
        return self._curious

    def follow(self, query: StreamingQuery) -> None:
        """Go on with a query that took the place of the former."""
        self._query = query
        self._seen, self._looked = None, -1

    def take(self) -> QueryWork | None:
        """The work since the last call; None when no batch ended or its plan is not known."""
        if self._unavailable:
            return None
        jobs = self._finished_jobs()
        stages = {job.id: handles.stages(self._session, job.stage_ids) for job in jobs}
        self._learn(jobs, stages)
        known = _first_jobs(job for job in jobs if len(stages[job.id]) in self._by_rank)
        self._curious = not (self._by_rank and len(known) == len(_first_jobs(jobs)))
        jobs = self._without_unseen(jobs, known)
        if not known:
            return None
        newest = known[-1]
        tasks = {
            stage.id: handles.stage_tasks(self._session, stage.id, stage.attempt)
            for stage in stages[newest.id]
        }
        return self._sum_up(jobs, known, stages, tasks)

    def _finished_jobs(self) -> list[JobInfo]:
        found = handles.jobs_of_group(self._session, str(self._query.runId), self._last_job)
        running = [job.id for job in found if job.completed_ms is None]
        # A running job is read when it is finished, and those after it with it.
        kept = [job for job in found if not running or job.id < min(running)]
        if kept:
            self._last_job = kept[-1].id
        return [job for job in kept if job.batch_id is not None]

    def _without_unseen(self, jobs: list[JobInfo], known: Sequence[JobInfo]) -> list[JobInfo]:
        """The jobs, but for those of the newest batch if its plan is still to come.

        A batch goes on for a while after its jobs, and its plan is looked at in the end. Where the
        next batch has jobs as well, nobody will look any more.
        """
        newest = jobs[-1].batch_id if jobs else None
        if newest is None or newest <= self._looked or newest in {job.batch_id for job in known}:
            return jobs
        first = next(place for place, job in enumerate(jobs) if job.batch_id == newest)
        self._last_job = jobs[first].id - 1
        return jobs[:first]

    def _learn(self, jobs: list[JobInfo], stages: dict[int, tuple[StageInfo, ...]]) -> None:
        """Match the parts of a plan with the stages of the batch it was seen in.

        Tables that are looked up are sent to executors by jobs of their own, which come first.
        """
        if self._seen is None:
            return
        batch, parts = self._seen
        for job in jobs:
            ranks = _match(parts, stages[job.id]) if job.batch_id == batch else None
            if ranks is not None:
                self._by_rank[len(ranks)], self._seen = ranks, None
                return
        if jobs and batch <= (jobs[-1].batch_id or 0):
            self._seen = None  # its jobs were read before its plan was, or had another form

    def look(self, batch_id: int, execution: BatchExecution | None = None) -> None:
        """Read the plan of a batch that has just run; called by the thread that ran it.

        An `execution` that has ended may be read by anyone.
        """
        if self._curious and self._seen is None:
            execution = execution or handles.last_execution(self._query)
            if execution is not None:
                self._seen = (batch_id, self.parts(execution))
        self._looked = batch_id

    def parts(self, execution: BatchExecution) -> list[OwnedPart]:
        """The parts of the plan of a batch that has ended, each with its component."""
        return owned_parts(execution.stage_parts(), self._component_of, self._lone_source)

    def _sum_up(
        self,
        jobs: Sequence[JobInfo],
        known: Sequence[JobInfo],
        stages: dict[int, tuple[StageInfo, ...]],
        tasks: dict[int, TaskColumns],
    ) -> QueryWork:
        newest = known[-1]
        last_ranks = self._by_rank[len(stages[newest.id])]
        busy_s: dict[str, float] = defaultdict(float)
        counts: dict[str, int] = defaultdict(int)
        groups: dict[str, GroupLoad] = {}
        routes: dict[str, RouteLoad] = {}
        shares: dict[tuple[int, int], dict[str, float]] = {}
        times: list[StageTime] = []
        for rank, stage in enumerate(stages[newest.id]):
            shares[len(last_ranks), rank] = _shares(last_ranks[rank], tasks[stage.id])
            for owned in last_ranks[rank]:
                rows = _rows_of(owned.part, tasks[stage.id])
                counts[owned.component] += len(rows)
                times.append(_stage_time(owned, tasks[stage.id], rows))
                if owned.routed is not None:
                    routed = _route_load(tasks[stage.id], rows, routes.get(owned.routed))
                    routes[owned.routed] = routed
                if owned.part.stateful:
                    grouping = self._grouping(newest.batch_id or 0)
                    load = _group_load(
                        owned.part, tasks[stage.id], rows, self._groups.get(owned.component),
                        grouping,
                    )  # fmt: skip
                    groups[owned.component] = self._groups[owned.component] = load
        for job in known:
            ranks = self._by_rank[len(stages[job.id])]
            for rank, stage in enumerate(stages[job.id]):
                even = {r.component: 1 / len(ranks[rank]) for r in ranks[rank]}
                share = shares.get((len(ranks), rank), even)
                for component, part in share.items():
                    busy_s[component] += part * stage.run_time_ms / 1e3
        # Further sinks of a batch read what its first job computed: work of the last component.
        first_ids = {job.id for job in known}
        last = last_ranks[-1][0].component
        for job in jobs:
            if job.id not in first_ids:
                busy_s[last] += sum(stage.run_time_ms for stage in stages[job.id]) / 1e3
        return QueryWork(
            dict(busy_s),
            dict(counts),
            groups,
            frozenset(job.batch_id for job in known if job.batch_id is not None),
            routes,
            node_times(tasks.values()),
            sum(int(stage.shuffle_remote_bytes.sum()) for stage in tasks.values()),
            sum(int(stage.fetch_wait_ms.sum()) for stage in tasks.values()) / 1e3,
            _shuffles([stages[job.id] for job in known]),
            tuple(times),
        )


def _stage_time(owned: OwnedPart, tasks: TaskColumns, rows: Positions) -> StageTime:
    return StageTime(
        owned.component,
        len(rows),
        int(tasks.shuffle_records_read[rows].sum()),
        float(tasks.duration_ms[rows].sum()) / 1e3,
        float(tasks.run_time_ms[rows].sum()) / 1e3,
        owned.part.reported,
    )


def _shuffles(batches: Sequence[tuple[StageInfo, ...]]) -> Shuffles:
    rows = sum(stage.shuffle_records_written for batch in batches for stage in batch)
    size = sum(stage.shuffle_bytes_written for batch in batches for stage in batch)
    return Shuffles(rows / len(batches), size / len(batches))


def _first_jobs(jobs: Iterable[JobInfo]) -> list[JobInfo]:
    """Of each batch the first; where all run a plan, later ones read what it cached."""
    firsts: dict[int | None, JobInfo] = {}
    for job in jobs:
        firsts.setdefault(job.batch_id, job)
    return list(firsts.values())


def _match(parts: list[OwnedPart], stages: tuple[StageInfo, ...]) -> list[list[OwnedPart]] | None:
    """The parts of each stage in order; None if the stages are not those of this plan."""
    ranks = [[one for one in parts if one.part.exchange_rdd in s.rdd_ids][-1:] for s in stages[:-1]]
    ranks.append([one for one in parts if one.part.exchange_rdd is None])
    whole = len(ranks) > 1 or len(ranks[0]) == len(parts)
    return ranks if whole and all(ranks) else None


def _rows_of(part: StagePart, tasks: TaskColumns) -> Positions:
    """Positions of a part's successful tasks, in order of partition."""
    inside = (tasks.status == "SUCCESS") & (tasks.partition >= part.first_task)
    if part.tasks is not None:
        inside &= tasks.partition < part.first_task + part.tasks
    return np.flatnonzero(inside)


def _route_load(tasks: TaskColumns, rows: Ints, others: RouteLoad | None) -> RouteLoad:
    """Load of each route; tasks of several consumers of a source do the work of one route."""
    load = RouteLoad(tasks.run_time_ms[rows] / 1e3, tasks.shuffle_records_read[rows])
    if others is None or len(others.rows) != len(load.rows):
        return load
    return RouteLoad(load.run_time_s + others.run_time_s, load.rows + others.rows)


def _group_load(
    part: StagePart, tasks: TaskColumns, rows: Positions, before: GroupLoad | None,
    grouping: TaskGroups | None = None,
) -> GroupLoad:  # fmt: skip
    """What each key group took; of several that one task worked on, all as much."""
    count = part.key_groups
    run_time_s, executor = np.zeros(count), np.full(count, "", dtype=np.dtype("<U64"))
    if before is not None and len(before.run_time_s) == count:
        run_time_s, executor = before.run_time_s.copy(), before.executor.copy()
    if grouping is not None:
        for row in rows.tolist():
            task = int(tasks.partition[row])
            mine = list(grouping[task]) if task < len(grouping) else []
            run_time_s[mine] = tasks.run_time_ms[row] / 1e3 / max(1, len(mine))
            executor[mine] = tasks.executor[row]
        return GroupLoad(run_time_s, executor, part.stateful, part.joins)
    if part.gathered:
        if len(rows):
            run_time_s[:] = tasks.run_time_ms[rows].sum() / 1e3 / count
            executor[:] = tasks.executor[rows[0]]  # there is one only, or each had its task
        return GroupLoad(run_time_s, executor, part.stateful, part.joins)
    group = tasks.partition[rows] - part.first_task
    inside = group < count
    run_time_s[group[inside]] = tasks.run_time_ms[rows][inside] / 1e3
    executor[group[inside]] = tasks.executor[rows][inside]
    return GroupLoad(run_time_s, executor, part.stateful, part.joins)


def _shares(inside: list[OwnedPart], tasks: TaskColumns) -> dict[str, float]:
    """How a stage's run time divides among components."""
    spent: dict[str, float] = defaultdict(float)
    for owned in inside:
        spent[owned.component] += float(tasks.run_time_ms[_rows_of(owned.part, tasks)].sum())
    total = sum(spent.values())
    if total == 0:
        return {component: 1 / len(spent) for component in spent}
    return {component: time / total for component, time in spent.items()}
