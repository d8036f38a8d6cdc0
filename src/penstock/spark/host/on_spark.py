"""Submitted topologies on one Spark session: each in a session and a scheduler pool of its own."""

import logging
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from penstock.config import Settings
from penstock.control.actions import SetExecutors
from penstock.control.clock import WallClock
from penstock.control.controller import LoopThread
from penstock.control.shared_cluster import SharedCluster
from penstock.errors import PenstockError
from penstock.spark import handles
from penstock.spark.act.executors import SparkExecutors
from penstock.spark.handles.driver import register_sources
from penstock.spark.host.loading import check_apart, load_submitted
from penstock.spark.host.submission import Submission
from penstock.spark.run.elastic import Among, ElasticRun
from penstock.spark.run.place import SOURCES, Place

log = logging.getLogger(__name__)

_POLL_S = 0.5
_LONGEST_PAUSE = 12  # periods between attempts at executors that do not come


class SparkRunner:
    """Runs submissions on one cluster, which the arbiter divides among them every period."""

    def __init__(self, session: SparkSession, settings: Settings) -> None:
        self._session, self._settings = session, settings
        self._executors = SparkExecutors(session)
        self._elastic = not self._executors.unavailable()
        slots = self._executors.slots_per_executor()
        most = settings.executors_max if self._elastic else self._executors.executors()
        self.shared = SharedCluster(most * slots, slots)
        self._runs: dict[str, ElasticRun] = {}
        self._lock = threading.Lock()
        self._clock = WallClock()
        self._pause = self._waits = 0
        self._dividing = LoopThread(self._divide_for_ever, self._clock)
        self._dividing.start()

    def close(self) -> None:
        """Divide nothing more."""
        self._clock.stop()
        self._dividing.join(70.0)

    def check(self, submission: Submission, code: Path) -> None:
        """Refuse a file that does not hold what it should."""
        check_apart(code, submission.file, submission.topology)

    def crowded(self, topologies: int) -> str | None:
        """A sentence where each cannot have a processor."""
        if topologies <= self.shared.processors:
            return None
        return (
            f"{topologies} topologies share {self.shared.processors} processors, less than one "
            "each; give the host a larger --executors-max."
        )

    def start(self, submission: Submission, code: Path, checkpoint: Path) -> "SparkRunning":
        """Run it; called in a thread of its own, which its queries inherit their pool from."""
        read = load_submitted(code, submission.file, submission.topology, submission.name)
        topology = read.promising(
            submission.name, submission.max_latency_s, submission.share
        )  # fmt: skip
        own = self._session.newSession()
        register_sources(own, *SOURCES)
        among = Among(submission.name, own, self.shared, submission.weight)
        run = ElasticRun(topology, self._settings, Place(checkpoint=checkpoint), among=among)
        try:
            run.__enter__()
        except BaseException:
            self.shared.leave(submission.name)
            raise
        with self._lock:
            self._runs[submission.name] = run
        return SparkRunning(submission.name, run, self)

    def left(self, name: str) -> None:
        """One is over; what it had is free."""
        with self._lock:
            self._runs.pop(name, None)
        self.shared.leave(name)

    def _divide_for_ever(self) -> None:
        while self._clock.wait_s(self._settings.period_s):
            self.divide()

    def divide(self) -> None:
        """Ask the arbiter, and carry out what it says."""
        decision = self.shared.settle()
        with self._lock:
            runs = dict(self._runs)
        for name, processors in decision.plan.processors.items():
            if name in runs:
                try:
                    handles.set_pool(self._session, name, processors)
                    runs[name].running.send_parallelism(processors)
                except PenstockError as error:
                    log.warning("%s keeps the pool it has: %s", name, error)
        if self._elastic and runs:
            self._scale(max(self._settings.executors_min, decision.plan.executors))

    def _scale(self, wanted: int) -> None:
        """Executors for all; where the cluster gives fewer, attempts come less and less often."""
        if wanted == self._executors.executors():
            self._pause = self._waits = 0
        elif self._waits > 0:
            self._waits -= 1
        else:
            outcome = self._executors.act(SetExecutors(wanted))
            log.info("%s: %s", outcome.action, outcome.detail)
            self._pause = 0 if outcome.done else min(_LONGEST_PAUSE, 2 * self._pause + 1)
            self._waits = self._pause


class SparkRunning:
    """One submission that runs."""

    def __init__(self, name: str, run: ElasticRun, runner: SparkRunner) -> None:
        self._name, self._run, self._runner = name, run, runner
        self._ending = threading.Event()

    def wait(self) -> None:
        """Until its streams end, it fails or it is to stop; then it is ended in this thread."""
        try:
            while not self._ending.is_set():
                if self._run.wait(_POLL_S):
                    break
        finally:
            self._run.__exit__(None, None, None)
            self._runner.left(self._name)

    def stop(self) -> None:
        """Let `wait` come to its end."""
        self._ending.set()

    def status(self) -> Mapping[str, Any]:
        """What its loop knows."""
        member, summary = self._runner.shared.member(self._name), self._run.summary()
        return {
            "run": self._run.run_id,
            "processors": member.granted,
            "processors_wanted": member.wanted,
            "max_latency_s": self._run.topology.max_latency_s,
            "share": self._run.topology.share,
            "results": summary.results,
            "in_time_share": summary.in_time_share,
        }
