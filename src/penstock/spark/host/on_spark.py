"""Submitted topologies on one Spark session: each in a session and a scheduler pool of its own."""

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from penstock.config import Settings
from penstock.control.actions import SetExecutors
from penstock.control.assembly import planned_limits
from penstock.control.clock import WallClock
from penstock.control.controller import LoopThread
from penstock.control.shared_cluster import SharedCluster
from penstock.errors import PenstockError
from penstock.sharing.quotas import Quota
from penstock.spark import handles
from penstock.spark.act.executors import SparkExecutors
from penstock.spark.handles.driver import register_sources
from penstock.spark.host.batch_watch import BatchWatch
from penstock.spark.host.common_work import SEPARATOR, as_measured, common_work, told_saving
from penstock.spark.host.costs import Cost, Costs
from penstock.spark.host.foreseen import foreseen, latency_text
from penstock.spark.host.loading import Promise, Whole, check_apart, load_whole
from penstock.spark.host.results import newest_rows
from penstock.spark.host.submission import Submission
from penstock.spark.run.before_start import check_interval
from penstock.spark.run.elastic import Among, ElasticRun
from penstock.spark.run.place import SOURCES, Place

log = logging.getLogger(__name__)

_POLL_S = 0.5
_LONGEST_PAUSE = 12  # periods between attempts at executors that do not come
_REMEMBERED = 12  # periods between two notes of what topologies take


class SparkRunner:
    """Runs submissions on one cluster, which the arbiter divides among them every period."""

    def __init__(
        self, session: SparkSession, settings: Settings, costs: Path, batch_limit_s: float
    ) -> None:
        """A topology whose batch takes longer than the limit is ended."""
        self._session, self._settings, self._costs = session, settings, Costs(costs)
        self._batch_limit_s = batch_limit_s
        self._executors = SparkExecutors(session)
        self._elastic = not self._executors.unavailable()
        slots = self._executors.slots_per_executor()
        most = settings.executors_max if self._elastic else self._executors.executors()
        self.processors = most * slots
        self.shared = SharedCluster(self.processors, slots)
        self._submissions: dict[str, Submission] = {}
        self._runs: dict[str, SparkRunning] = {}
        self._periods = 0
        self._lock = threading.Lock()
        self._clock = WallClock()
        self._pause = self._waits = self._executors_wanted = 0
        # Executors take seconds to come and to go; what there is is divided meanwhile.
        self._threads = [
            LoopThread(partial(self._for_ever, step), self._clock)
            for step in (self.divide, self._scale)
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Divide nothing more."""
        self._clock.stop()
        for thread in self._threads:
            thread.join(70.0)

    def set_quotas(self, quotas: Mapping[str, Quota]) -> None:
        """What communities have, from the next division on."""
        self.shared.set_quotas(quotas)

    def check(self, submission: Submission, code: Path) -> str | None:
        """Refuse a file that does not hold what it should; say what becomes of promises with it."""
        own = check_apart(code, submission.parts)
        bound_s = submission.max_latency_s or own.max_latency_s
        share = submission.share or own.share
        assert bound_s is not None
        assert share is not None
        interval_s = self._settings.batch_interval_s or 0.0
        check_interval(interval_s, share, bound_s, "batch-interval of the host")
        self._join(submission, bound_s, share)
        return foreseen(self.shared, submission.name, bound_s, share, self._settings.aim)

    def _join(self, submission: Submission, bound_s: float, share: float) -> None:
        cost = self._costs.of(submission)
        limits = planned_limits(self._settings, 1, self.processors, bound_s, share)
        wanted = min(cost.wanted_for(limits.max_latency_s), self.processors)
        self.shared.join(
            submission.name, limits, submission.weight, wanted=wanted,
            expected_s=cost.expected_s, community=submission.community,
        )  # fmt: skip
        with self._lock:
            self._submissions[submission.name] = submission

    def start(self, submission: Submission, code: Path, checkpoint: Path) -> "SparkRunning":
        """Run it; called in a thread of its own, which its queries inherit their pool from."""
        promise = Promise(submission.max_latency_s, submission.share)
        whole = load_whole(code, submission.parts, submission.name, promise)
        topology = whole.topology
        self._join(submission, topology.max_latency_s, topology.share)
        own = self._session.newSession()
        register_sources(own, *SOURCES)
        watch = BatchWatch()
        among = Among(submission.name, own, self.shared, watch.began, watch.ended)
        run = ElasticRun(topology, self._settings, Place(checkpoint=checkpoint), among=among)
        try:
            run.__enter__()
        except BaseException:
            self.left(submission.name)
            raise
        running = SparkRunning(run, self, whole, watch)
        with self._lock:
            self._runs[submission.name] = running
        return running

    def left(self, name: str) -> None:
        """One is over; what it had is free."""
        with self._lock:
            ran = self._runs.pop(name, None)
            submission = self._submissions.pop(name, None)
        if ran is not None and submission is not None:
            self._remember(submission)
        self.shared.leave(name)

    def _remember(self, submission: Submission) -> None:
        """What it takes, for the next time that it is submitted."""
        member = self.shared.member(submission.name)
        if member.expected_s:
            try:
                self._costs.keep(submission, Cost(member.wanted, member.expected_s))
            except (OSError, PenstockError) as error:
                log.warning("what %s takes is not kept: %s", submission.name, error)

    def common(self, names: Collection[str]) -> list[dict[str, Any]]:
        """What these have in common, and what doing it once would save where each does it."""
        with self._lock:
            runs = {name: running for name, running in self._runs.items() if name in names}
        found = common_work({name: running.whole for name, running in runs.items()})
        for one in found:
            one["saving"] = None
            if not one["once"]:
                whose = [runs[name.split(SEPARATOR)[0]].run for name in one["topologies"]]
                newest = [next(iter(reversed(run.observations)), None) for run in whose]
                measured = [
                    as_measured(run.topology, seen) for run, seen in zip(whose, newest, strict=True)
                ]
                one["saving"] = told_saving(measured, newest[0], one["steps"], self.processors)
        return found

    def _for_ever(self, step: Callable[[], None]) -> None:
        while self._clock.wait_s(self._settings.period_s):
            step()

    def divide(self) -> None:
        """Ask the arbiter, and carry out what it says."""
        decision = self.shared.settle()
        with self._lock:
            runs = dict(self._runs)
            submissions = [self._submissions[name] for name in runs]
        self._periods += 1
        if self._periods % _REMEMBERED == 0:
            for submission in submissions:
                self._remember(submission)
        for running in runs.values():
            running.end_if_overdue(self._batch_limit_s)
        for name, processors in decision.plan.processors.items():
            if name in runs:
                try:
                    handles.set_pool(self._session, name, processors)
                    runs[name].run.running.send_parallelism(self.shared.usable(name, processors))
                except PenstockError as error:
                    log.warning("%s keeps the pool it has: %s", name, error)
        if self._elastic and runs:
            self._executors_wanted = max(self._settings.executors_min, decision.plan.executors)

    def _scale(self) -> None:
        """Executors for all; where the cluster gives fewer, attempts come less and less often."""
        wanted = self._executors_wanted
        if wanted in (0, self._executors.executors()):
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

    def __init__(
        self, run: ElasticRun, runner: SparkRunner, whole: Whole, watch: BatchWatch
    ) -> None:
        self._name, self.run, self._runner = run.topology.name, run, runner
        self.whole, self._watch = whole, watch
        self._ending, self._overdue = threading.Event(), ""

    def end_if_overdue(self, limit_s: float) -> None:
        """Let it fail if a batch of it does not end."""
        said = self._watch.overdue(limit_s)
        if said is not None:
            self._overdue = said
            self.run.running.stop_limit_s = 0.0  # it had its time
            self._ending.set()

    def wait(self) -> None:
        """Until its streams end, it fails or it is to stop; then it is ended in this thread."""
        try:
            while not self._ending.is_set():
                if self.run.wait(_POLL_S):
                    break
        finally:
            self.run.__exit__(None, None, None)
            self._runner.left(self._name)
        if self._overdue:
            raise PenstockError(self._overdue)

    def stop(self) -> None:
        """Let `wait` come to its end."""
        self._ending.set()

    def status(self) -> Mapping[str, Any]:
        """What its loop knows."""
        member, summary = self._runner.shared.member(self._name), self.run.summary()
        late_s = self._runner.shared.expected_late_s(self._name)
        return {
            "run": self.run.run_id,
            "parts": list(self.whole.parts) if len(self.whole.parts) > 1 else [],
            "missed_by": None if late_s is None else latency_text(late_s),
            "processors": member.granted,
            "processors_wanted": member.wanted,
            "max_latency_s": self.run.topology.max_latency_s,
            "share": self.run.topology.share,
            "results": summary.results,
            "in_time_share": summary.in_time_share,
        }

    def results(self, sink: str | None, rows: int) -> Mapping[str, Any]:
        """What one of its sinks holds."""
        return newest_rows(self.run, sink, rows)
