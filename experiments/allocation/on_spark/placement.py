"""A streaming query on an embedded cluster, placed round by round by a policy of ours."""

import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks._hosts import cluster_of_hosts
from penstock.control.actions import Move, MoveKeyGroups, Outcome
from penstock.control.allocating import Allocating
from penstock.control.records import AllocationRecord
from penstock.errors import Unavailable
from penstock.model.observation import Observation
from penstock.spark import handles
from penstock.spark.act.actuator import SparkActuator
from penstock.spark.act.executors import executor_settings
from penstock.spark.act.placement import Placement
from penstock.spark.cluster.embedded import EmbeddedCluster
from penstock.spark.measure.attached import AttachedMeasurer
from penstock.spark.run.place import build_session
from penstock.spark.run.together import RunningTopology

LIMIT_S = 180.0
EXECUTOR_MB = 512

Start = Callable[[SparkSession, Path], StreamingQuery | RunningTopology]


class Trial:
    """One query, its measurer and what acts on it; ended together."""

    def __init__(
        self, start: Start, executors: int, key_groups: int, first: int = 0, hosts: bool = False
    ) -> None:
        """`first` executors are there at the start, all of them when it is 0.

        With `hosts`, each is on one of its own (a network namespace, which needs root).
        """
        self._start, self._hosts = start, hosts
        self.executors, self._key_groups = executors, key_groups
        self._first = first or executors
        self._resources = ExitStack()

    def __enter__(self) -> "Trial":
        try:
            self._enter()
        except BaseException:
            self._resources.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._resources.close()

    def _enter(self) -> None:
        made = tempfile.TemporaryDirectory(prefix="penstock-trial-", ignore_cleanup_errors=True)
        self.folder = folder = Path(self._resources.enter_context(made))
        cluster = self._cluster()
        extra = {
            **cluster,
            **executor_settings(self._first, self.executors),
            "spark.executor.memory": f"{EXECUTOR_MB}m",
        }
        self.session = build_session(
            "trial", cluster["spark.master"], key_groups=self._key_groups,
            log_file=folder / "spark.log", quick_start=True, extra=extra,
        )  # fmt: skip
        self._resources.callback(self.session.stop)
        started = self._start(self.session, folder)
        if isinstance(started, RunningTopology):
            self._resources.enter_context(started)
            started = started.queries[0]
        else:
            self._resources.callback(started.stop)
        self.query = started
        self.placement = Placement(self.session, self.query)
        self.placement.watch()
        self._resources.callback(self.placement.close)
        self.actuator = SparkActuator(self.session, [self.placement])
        self.measurer = AttachedMeasurer(
            self.session, lambda: [self.query], LIMIT_S, lambda _: [self.placement]
        )
        self.until(lambda: len(self.nodes()) >= self._first and bool(self.placement.observe()))

    def _cluster(self) -> dict[str, str]:
        """Settings of sessions on it."""
        if self._hosts:
            made = cluster_of_hosts(self.executors, 1, EXECUTOR_MB)
            return self._resources.enter_context(made)
        embedded = EmbeddedCluster(self.executors, EXECUTOR_MB * self.executors)
        return dict(self._resources.enter_context(embedded).settings)

    def nodes(self) -> list[str]:
        """Executors that take tasks, oldest first."""
        return [one.id for one in handles.executors(self.session) if one.active]

    def batches(self, count: int) -> None:
        """Wait until so many more have ended."""
        progress = self.query.lastProgress
        wanted = (progress.batchId if progress is not None else -1) + count
        self.until(lambda: (p := self.query.lastProgress) is not None and p.batchId >= wanted)

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition, with a limit."""
        deadline = time.monotonic() + LIMIT_S
        while not condition():
            error = self.query.exception() if not self.query.isActive else None
            if error is not None or time.monotonic() > deadline:
                raise Unavailable(f"the trial came to nothing: {error or 'it took too long'}")
            time.sleep(0.1)

    def place(self, where: Callable[[str, int], str]) -> None:
        """Put every key group on the node that a function of component and number names."""
        moves = [
            Move(name, group, where(name, group))
            for name, groups in self.placement.observe().items()
            for group in range(len(groups.node))
        ]
        self.placement.move(moves)

    def round(
        self, allocating: Allocating, batches: int
    ) -> tuple[Observation, AllocationRecord | None, Outcome | None]:
        """Let some batches pass, look at them, and do what a policy plans."""
        self.batches(batches)
        observation = self.measurer.observe()
        assert observation is not None
        # On one host a byte to another executor costs nothing, and ALBIC would join nothing; here
        # it is asked what it does where that is not known.
        unpriced = tuple(replace(one, remote_byte_s=float("nan")) for one in observation.traffic)
        observation = replace(observation, traffic=unpriced)
        record = allocating.plan(observation, len(self.nodes()), dry_run=False)
        outcome = None
        if record is not None and record.moves:
            outcome = self.actuator.act(MoveKeyGroups(record.moves))
            allocating.learn(outcome)
            self.measurer.observe()  # what the moving batch took is not load
        return observation, record, outcome


def slowest_to_mean(observation: Observation) -> float:
    """The task time of the busiest executor over the mean of all; 1 is balance."""
    names = [node.name for node in observation.nodes if not node.draining]
    spent_s = dict.fromkeys(names, 0.0)
    for component in observation.components:
        if component.key_groups is not None:
            groups = component.key_groups
            for node, load_s in zip(groups.node.tolist(), groups.load_s.tolist(), strict=True):
                spent_s[node] = spent_s.get(node, 0.0) + load_s
    times_s = np.array(list(spent_s.values()))
    return float(times_s.max() / times_s.mean()) if times_s.sum() > 0 else float("nan")
