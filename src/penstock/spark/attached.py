"""Observations of a plain streaming query, from its progress, its tasks and its executors.

What only a topology of ours can tell is missing: when rows arrived, what waits outside of the
query, and which operator takes what. Components are the parts of the query that hold state.
"""

import time

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.errors import Unavailable
from penstock.model.observation import (
    BatchObservation,
    ComponentObservation,
    GroupTraffic,
    KeyGroups,
    NodeObservation,
    Observation,
)
from penstock.spark import handles
from penstock.spark.placement import Placement


class AttachedMeasurer:
    """The loop's Measurer over any streaming query and its placement."""

    def __init__(self, session: SparkSession, query: StreamingQuery, placement: Placement) -> None:
        self._session = session
        self._query = query
        self._placement = placement
        self._at_s = time.time()
        self._batch = -1
        self._busy_ms: dict[str, int] = {}

    def observe(self) -> Observation | None:
        """What happened since the last call; None before the first batch has ended."""
        now_s = time.time()
        period_s = now_s - self._at_s
        new = [p for p in self._query.recentProgress if p.batchId > self._batch]
        if period_s <= 0 or not (new or self._placement.components):
            return None
        missing = ["latency: a plain query does not tell when rows arrived"]
        rows = sum(progress.numInputRows for progress in new)
        took_s = [p.durationMs.get("triggerExecution", 0) / 1e3 for p in new]
        self._at_s, self._batch = now_s, max((p.batchId for p in new), default=self._batch)
        nodes = self._nodes()
        rate_per_s = rows / period_s
        components = tuple(
            _component(name, groups, len(new), rate_per_s, nodes)
            for name, groups in self._placement.observe().items()
        )
        batches = None
        if took_s:
            slots = max(1, sum(node.slots for node in nodes))
            busy_s = sum(component.busy_s for component in components) / len(took_s)
            mean_s = float(np.mean(took_s))
            overhead_s = max(0.0, mean_s - busy_s / slots)
            batches = BatchObservation(len(took_s), mean_s, overhead_s, rows / len(took_s))
        return Observation(
            at_s=now_s,
            period_s=period_s,
            arrival_rate_per_s=rate_per_s,
            backlog_rows=float("nan"),
            components=components,
            nodes=nodes,
            batches=batches,
            missing=tuple(missing),
            traffic=self._traffic(missing),
        )

    def _traffic(self, missing: list[str]) -> tuple[GroupTraffic, ...]:
        try:
            return self._placement.traffic()
        except Unavailable as reason:
            missing.append(f"traffic: {reason}")
            return ()

    def _nodes(self) -> tuple[NodeObservation, ...]:
        found = handles.executors(self._session)
        before, self._busy_ms = self._busy_ms, {one.id: one.busy_ms for one in found}
        return tuple(
            NodeObservation(
                one.id,
                one.cores,
                max(0, one.busy_ms - before.get(one.id, one.busy_ms)) / 1e3,
                not one.active,
            )
            for one in found
        )


def _component(
    name: str, groups: KeyGroups, batches: int, rate_per_s: float,
    nodes: tuple[NodeObservation, ...],
) -> ComponentObservation:  # fmt: skip
    """The newest batch stands for all of the period."""
    load_s = groups.load_s * max(batches, 1)
    busy_s = float(load_s.sum())
    return ComponentObservation(
        name=name,
        operators=(name,),
        arrival_rate_per_s=rate_per_s,
        service_time_s=float("nan"),
        parallelism=sum(node.slots for node in nodes if not node.draining),
        busy_s=busy_s,
        key_groups=KeyGroups(load_s, groups.state_bytes, groups.node),
        tasks=len(load_s),
    )
