"""Observations of streaming queries that were started without Penstock.

Each query is one component: its batches share all processors in time, which is all the micro-batch
model needs. What Spark does not report is inferred in attached_batches.py.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.control.clock import steady_s
from penstock.errors import Unavailable
from penstock.model.decision import USUAL_SHARE
from penstock.model.observation import (
    BatchObservation,
    ComponentObservation,
    Observation,
)
from penstock.spark import handles
from penstock.spark.measure.attached_batches import (
    AttachedBatch,
    QueryRate,
    latency_of,
    read_batches,
    shares_of_rows,
)
from penstock.spark.measure.attached_state import HeldState, with_state
from penstock.spark.measure.nodes import NodeReader


@dataclass
class _Followed:
    """What is known of one query so far."""

    name: str
    last: AttachedBatch | None = None
    last_filled: AttachedBatch | None = None  # the newest with rows
    last_job: int = -1
    rate_per_s: float = float("nan")
    service_time_s: float = float("nan")
    tasks: int = 0
    unpaired_busy_s: float = 0.0  # of jobs whose batch has not been reported yet
    new: list[AttachedBatch] = field(default_factory=list)


def state_partitions(query: StreamingQuery) -> int:
    """The key groups of a query's state; 0 where it keeps none, or has not said so yet."""
    progress = query.lastProgress
    stateful = progress.stateOperators if progress is not None else []
    return max((int(operator.numShufflePartitions) for operator in stateful), default=0)


class AttachedMeasurer:
    """The loop's Measurer over queries that come and go."""

    def __init__(
        self,
        session: SparkSession,
        queries: Callable[[], Sequence[StreamingQuery]],
        max_latency_s: float,
        held_state: Callable[[Sequence[StreamingQuery]], Sequence[HeldState]] | None = None,
        share: float = USUAL_SHARE,
    ) -> None:
        """`held_state` gives the key groups of the queries that run, where they can be read.

        `share` of the results must be within `max_latency_s`.
        """
        self._held_state = held_state
        self._session, self._queries = session, queries
        self._max_latency_s, self._share = max_latency_s, share
        self._followed: dict[str, _Followed] = {}
        self._intervals_s: dict[str, float] = {}
        self._nodes = NodeReader(session)
        self._last_s, self._last_wall_s = steady_s(), time.time()

    def observe(self) -> Observation | None:
        """What happened since the last call; None while no query runs."""
        now_s, wall_s = steady_s(), time.time()  # Spark stamps batches by the machine's clock
        period_s = now_s - self._last_s
        running = list(self._queries())
        if period_s <= 0 or not running:
            return None
        self._last_s = now_s
        self._forget_ended(running)
        missing: list[str] = []
        nodes = self._nodes.take(missing)
        slots = sum(node.slots for node in nodes if not node.draining)
        followed = [self._follow(query, missing) for query in running]
        self._last_wall_s = wall_s
        busy_s = [
            self._work(query, one, missing) for query, one in zip(running, followed, strict=True)
        ]
        components = tuple(
            ComponentObservation(
                name=one.name,
                operators=(),
                arrival_rate_per_s=one.rate_per_s,
                service_time_s=one.service_time_s,
                parallelism=slots,
                busy_s=busy,
                backlog_rows=_waiting(one, wall_s),
                tasks=one.tasks,
            )
            for one, busy in zip(followed, busy_s, strict=True)
        )
        batches = [batch for one in followed for batch in one.new]
        rates = _rates(followed)
        share = {name: one.share for name, one in rates.items()}
        if any(np.isnan(c.service_time_s) for c in components):
            missing.append("service times: no batch has been measured yet")
        seen = Observation(
            at_s=now_s,
            period_s=period_s,
            arrival_rate_per_s=float(np.nansum([r.rate_per_s * r.share for r in rates.values()])),
            backlog_rows=sum(c.backlog_rows * share[c.name] for c in components),
            components=components,
            nodes=nodes,
            latency=latency_of(batches, rates, self._max_latency_s, self._share),
            batches=_batches(batches, sum(busy_s), slots),
            missing=tuple(missing),
            rate_age_s=max((_age_s(one, wall_s) for one in followed), default=0.0),
        )
        if self._held_state is None:
            return seen
        return with_state(seen, self._held_state(running))

    def _forget_ended(self, running: Sequence[StreamingQuery]) -> None:
        """A query that is started again has another run's number."""
        for ended in self._followed.keys() - {str(query.runId) for query in running}:
            del self._followed[ended]
            self._intervals_s.pop(ended, None)

    def _follow(self, query: StreamingQuery, missing: list[str]) -> _Followed:
        run_id = str(query.runId)
        one = self._followed.get(run_id)
        if one is None:
            one = self._followed[run_id] = _Followed(query.name or f"query-{str(query.id)[:8]}")
        reports = [json.loads(report.json) for report in query.recentProgress]
        before = one.last
        one.new = read_batches(one.name, reports, before, self._interval_s(query))
        if one.new:
            one.last = one.new[-1]
            filled = (batch for batch in reversed(one.new) if batch.rows > 0)
            one.last_filled = next(filled, one.last_filled)
            since_s = before.formed_s if before is not None else one.new[0].formed_s
            counted = one.new if before is not None else one.new[1:]
            if one.last.formed_s > since_s:
                rows = sum(batch.rows for batch in counted)
                one.rate_per_s = rows / (one.last.formed_s - since_s)
        elif one.last is not None and one.last.ended_s < self._last_wall_s and not _active(query):
            one.rate_per_s = 0.0  # it waits for rows
        if np.isnan(one.rate_per_s):
            missing.append(f"arrival rate of {one.name}: too few batches ended")
        return one

    def _interval_s(self, query: StreamingQuery) -> float:
        run_id = str(query.runId)
        if run_id not in self._intervals_s:
            try:
                self._intervals_s[run_id] = handles.trigger_interval_s(query)
            except Unavailable:
                self._intervals_s[run_id] = float("inf")  # then the whole gap may be waiting
        return self._intervals_s[run_id]

    def _work(self, query: StreamingQuery, one: _Followed, missing: list[str]) -> float:
        """Processor-seconds of the jobs that ended, and from them the cost of a row."""
        try:
            found = handles.jobs_of_group(self._session, str(query.runId), one.last_job)
            running = [job.id for job in found if job.completed_ms is None]
            ended = [job for job in found if not running or job.id < min(running)]
            stages = handles.stages(self._session, tuple(s for job in ended for s in job.stage_ids))
        except Unavailable as reason:
            missing.append(f"work of {one.name}: {reason}")
            return 0.0
        if ended:
            one.last_job = ended[-1].id
            one.tasks = max((stage.tasks for stage in stages), default=one.tasks)
        busy_s = sum(stage.run_time_ms for stage in stages) / 1e3
        one.unpaired_busy_s += busy_s
        rows = sum(batch.rows for batch in one.new)
        if rows:
            one.service_time_s = one.unpaired_busy_s / rows
            one.unpaired_busy_s = 0.0
        return busy_s


def _rates(followed: Sequence[_Followed]) -> dict[str, QueryRate]:
    """Of each query, with the part of its rows that no other query counts."""
    newest = {one.name: one.last_filled for one in followed if one.last_filled is not None}
    shares = shares_of_rows(newest)
    return {one.name: QueryRate(one.rate_per_s, shares.get(one.name, 1.0)) for one in followed}


def _active(query: StreamingQuery) -> bool:
    status = query.status
    return bool(status["isTriggerActive"]) and bool(status["isDataAvailable"])


def _waiting(one: _Followed, wall_s: float) -> float:
    """Rows that came since the newest ended batch was formed, and those that source has left."""
    if one.last is None or np.isnan(one.rate_per_s):
        return 0.0
    return one.last.lag_rows + one.rate_per_s * _age_s(one, wall_s)


def _age_s(one: _Followed, wall_s: float) -> float:
    """Since when its rate says nothing: it is that of rows which came before a batch was formed."""
    if one.last is None or one.rate_per_s == 0:
        return 0.0
    return max(0.0, wall_s - one.last.formed_s)


def _batches(
    batches: Sequence[AttachedBatch], busy_s: float, slots: int
) -> BatchObservation | None:
    filled = [batch for batch in batches if batch.rows > 0]
    if not filled:
        return None
    duration_s = float(np.mean([batch.duration_s for batch in filled]))
    work_s = busy_s / len(batches) / max(1, slots)
    return BatchObservation(
        len(filled),
        duration_s,
        max(0.0, duration_s - work_s),
        float(np.mean([batch.rows for batch in filled])),
    )
