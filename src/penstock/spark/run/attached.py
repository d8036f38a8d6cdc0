"""`penstock.attach`: the loop over a streaming query that was written without Penstock.

The query is not changed. Executors follow the micro-batch model; where something may not be done
here (another cluster manager, a setting), the decision is remembered as advice.
"""

import logging
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.config import Settings
from penstock.control.clock import WallClock
from penstock.control.foresight import Foresight
from penstock.control.from_settings import allocating_of, policy_of, shadow_policies
from penstock.control.guards.standard import standard_guards
from penstock.control.history.store import HistoryStore
from penstock.control.loop import Loop
from penstock.control.records import RunRecord
from penstock.control.step import Step
from penstock.control.summary import RunSummary, summarise_run
from penstock.errors import InvalidInput
from penstock.model.decision import Limits
from penstock.spark.act.actuator import SparkActuator
from penstock.spark.act.attached_placements import AttachedPlacements
from penstock.spark.act.placement import cannot_place
from penstock.spark.measure.attached import AttachedMeasurer
from penstock.spark.run.last_resort_checks import check_attached

log = logging.getLogger(__name__)

JOIN_LIMIT_S = 70.0  # an act under way may take a minute


class Attached:
    """A controller beside a query; `detach` ends it and leaves the query as it is.

    It ends by itself with the program: its thread keeps nothing alive.
    """

    def __init__(
        self, target: StreamingQuery | SparkSession, max_latency_s: float, settings: Settings
    ) -> None:
        check_attached(settings)
        self.settings, self.max_latency_s = settings, max_latency_s
        self.steps: list[Step] = []
        self._session = _session_of(target)
        self._target = target
        self._clock = WallClock()
        self._resources = ExitStack()
        try:
            self._start()
        except BaseException:
            self._resources.close()
            raise

    def _start(self) -> None:
        settings = self.settings
        store = self._resources.enter_context(HistoryStore(settings.history))
        allocating = allocating_of(settings)
        placements = self._placed() if allocating is not None else None
        actuator = SparkActuator(self._session, placements.current if placements else ())
        slots = actuator.slots_per_executor()
        policy = policy_of(settings, slots)
        name = self._name()
        history = store.begin(
            RunRecord(
                name, policy.name, time.time(), settings.period_s, self.max_latency_s, slots,
                settings.dry_run, executors_min=settings.executors_min,
                executors_max=settings.executors_max, foresight_s=settings.foresight_s,
            )
        )  # fmt: skip
        self.run_id = history.run_id
        self._resources.callback(lambda: history.end(time.time()))
        limits = Limits(
            settings.executors_min * slots,
            settings.executors_max * slots,
            settings.aim * self.max_latency_s,
        )
        for action, why in actuator.unavailable().items():
            log.warning("attached to %s for advice only, not for %s: %s", name, action, why)
        measurer = AttachedMeasurer(
            self._session, self.queries, self.max_latency_s,
            placements.follow if placements else None,
        )  # fmt: skip
        self._loop = Loop(
            self._clock,
            measurer,
            actuator, history, policy, limits, standard_guards(settings, slots),
            settings.period_s, settings.dry_run, settings.window, (), "time",
            self.steps.append, shadow_policies(settings, slots), Foresight(settings.foresight_s),
            allocating if placements is not None else None,
        )  # fmt: skip
        self._thread = threading.Thread(target=self._loop.run, name="penstock", daemon=True)
        self._thread.start()

    def _placed(self) -> AttachedPlacements | None:
        """Where key groups live; None, told as advice, where they cannot be moved."""
        why = cannot_place(self._session)
        if why:
            log.warning("key groups stay where they are: %s", why)
            return None
        several = isinstance(self._target, SparkSession)
        placements = AttachedPlacements(self._session, several)
        self._resources.callback(placements.close)
        return placements

    def queries(self) -> Sequence[StreamingQuery]:
        """The queries that are followed: the one given, or all that run in the session."""
        if isinstance(self._target, SparkSession):
            return self._session.streams.active
        return [self._target] if self._target.isActive else []

    def _name(self) -> str:
        if isinstance(self._target, SparkSession):
            return str(self._session.sparkContext.appName)
        return self._target.name or f"query-{str(self._target.id)[:8]}"

    def summary(self) -> RunSummary:
        """What it came to so far."""
        observed = [step.observation for step in self.steps if step.observation is not None]
        return summarise_run(
            observed, self.steps, self.max_latency_s,
            self.settings.executors_min, self.settings.executors_max,
        )  # fmt: skip

    def detach(self) -> RunSummary:
        """End the controller; the query goes on with what it has."""
        self._clock.stop()
        self._thread.join(timeout=JOIN_LIMIT_S)
        self._resources.close()
        return self.summary()

    def __enter__(self) -> "Attached":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.detach()


def _session_of(target: object) -> SparkSession:
    if isinstance(target, SparkSession):
        return target
    if isinstance(target, StreamingQuery):
        return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    raise InvalidInput(
        f"attach(target) is {type(target).__name__}; give a running StreamingQuery or the session."
    )
