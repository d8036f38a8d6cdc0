"""A topology run under the loop: cluster, session, queries, controller, all ended together."""

import logging
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from pyspark.sql import Row, SparkSession
from sqlalchemy.exc import SQLAlchemyError

from penstock.config import Settings
from penstock.control.chosen import (
    chosen_allocating,
    chosen_pacing,
    chosen_policy,
    chosen_resorting,
    shadow_policies,
)
from penstock.control.clock import WallClock
from penstock.control.foresight import Foresight
from penstock.control.guards.standard import standard_guards
from penstock.control.history.store import HistoryStore, RunHistory
from penstock.control.loop import Loop
from penstock.control.loop_thread import KeptLoop
from penstock.control.records import FailureRecord, RunRecord
from penstock.control.step import Step
from penstock.control.summary import RunSummary, summarise_run
from penstock.fusion.proposal import parse_groups
from penstock.model.decision import Limits, RoomDecision
from penstock.model.observation import Observation
from penstock.model.topology import Topology
from penstock.spark.act.actuator import SparkActuator, placements_of, traffic_of
from penstock.spark.act.apart import ApartActuator
from penstock.spark.act.executors import SparkExecutors, executor_settings
from penstock.spark.act.placement import Placement
from penstock.spark.act.routes import RouteFollower
from penstock.spark.cluster.detached import cluster_settings
from penstock.spark.cluster.embedded import EmbeddedCluster
from penstock.spark.compile.fused import PlanChoice
from penstock.spark.handles.messages import first_line
from penstock.spark.measure.apart import ApartMeasurer
from penstock.spark.measure.together import SparkMeasurer
from penstock.spark.run.apart import RunningApart
from penstock.spark.run.last_resort_checks import check_degrading
from penstock.spark.run.plan_choice import PlanName, chosen_plan
from penstock.spark.run.session import build_session
from penstock.spark.run.slow_loop import SlowLoop, carried_out
from penstock.spark.run.together import Pace, RunningTopology
from penstock.spark.run.warm_up import warm_up
from penstock.spark.sources.program import StreamsProgram

log = logging.getLogger(__name__)

EMBEDDED = "embedded"
DETACHED = "cluster"  # the one of `penstock cluster up`
JOIN_LIMIT_S = 70.0  # an act under way may take a minute


@dataclass(frozen=True)
class Place:
    """Where a run takes place and what it leaves there."""

    master: str = "local[2]"  # or "embedded", "cluster", or a Spark master's URL
    checkpoint: Path | None = None  # a temporary one when not given
    log_file: Path | None = None  # Spark's own messages; beside the checkpoint when not given
    once: bool = False  # work off what is there and end
    warm_up: bool = False  # run a few rows through the operators before the streams begin
    apart: bool = False  # one query for each component, joined by channels
    processors: Mapping[str, int] | None = None  # that components apart begin with
    plan: PlanName = None  # None: as the checkpoint; "none", "auto", or a plan
    apply: bool = False  # carry state over to another plan, if the plan asks for it


class ElasticRun:
    """Everything a run needs, as one context manager.

    The loop is a thread of its own: if it dies, the query goes on as it is and the loop is begun
    again.
    """

    def __init__(
        self,
        topology: Topology,
        settings: Settings,
        place: Place = Place(),  # noqa: B008 - frozen
        on_step: Callable[[Step], None] | None = None,
    ) -> None:
        topology.check()
        check_degrading(topology, settings, place.apart)
        self.topology = topology
        self.settings = settings
        self.place = place
        self.steps: list[Step] = []
        self._on_step = on_step
        self._resources = ExitStack()
        self._clock = WallClock()
        self.placements: list[Placement] = []  # none where components run apart

    def __enter__(self) -> "ElasticRun":
        try:
            self._policy = chosen_policy(self.settings)
            self._shadows = shadow_policies(self.settings)
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
        self._clock.stop()
        self._resources.close()

    def _enter(self) -> None:
        # First, so that a history that cannot be written is refused before anything runs.
        store = self._resources.enter_context(HistoryStore(self.settings.history))
        checkpoint = self.place.checkpoint
        if checkpoint is None:
            made = tempfile.TemporaryDirectory(prefix="penstock-", ignore_cleanup_errors=True)
            checkpoint = Path(self._resources.enter_context(made)) / "checkpoint"
        choice = chosen_plan(
            self.place.plan, self.place.apply, store, self.topology.name, checkpoint
        )
        self.session = self._session(checkpoint)
        choice, decided = self._warmed(choice, checkpoint)
        pace = Pace(self.settings.batch_interval_s, self.place.once)
        self.running = self._resources.enter_context(self._queries(checkpoint, pace, choice))
        self._follower = RouteFollower(self.running)
        self._history = self._begin_history(store)
        if decided is not None:
            self._history.told(decided)
        self.slow_loop = SlowLoop(self.running.built, self._history.told)
        self.plan = tuple(carried_out(self.running.built, choice.expected_gains))
        for decision in self.plan:
            self._history.told(decision)
        self._start_loop()

    def _warmed(
        self, choice: PlanChoice, checkpoint: Path
    ) -> tuple[PlanChoice, RoomDecision | None]:
        """Warm code, and for `auto` without a proposal the plan that warming up speaks for."""
        if not self.place.warm_up or self.place.apart:
            return choice, None
        made = warm_up(self.topology, self.session, choice)
        begun = (checkpoint / "queries").is_dir()
        if made is None or self.place.plan != "auto" or choice.plan is not None or begun:
            return choice, None
        groups = parse_groups(made.what)
        if groups:
            warm_up(self.topology, self.session, PlanChoice(groups))
        gains = {made.what: made.numbers["expected_gain"]}
        return PlanChoice(groups, if_possible=True, expected_gains=gains), made

    def _queries(self, checkpoint: Path, pace: Pace, choice: PlanChoice) -> RunningTopology:
        if not self.place.apart:
            return RunningTopology(self.topology, self.session, checkpoint, pace, choice=choice)
        return RunningApart(
            self.topology, self.session, checkpoint, pace, processors=self.place.processors,
            max_rows=self.settings.channel_rows,
        )  # fmt: skip

    def _session(self, checkpoint: Path) -> SparkSession:
        settings, master = self.settings, self.place.master
        embedded = master == EMBEDDED
        extra: dict[str, str] = {}
        if embedded:
            slots = settings.slots * settings.executors_max
            memory_mb = settings.executor_memory_mb * settings.executors_max
            cluster = self._resources.enter_context(EmbeddedCluster(slots, memory_mb))
            extra |= cluster.settings
            master = cluster.master_url
        elif master == DETACHED:
            extra |= cluster_settings()
            master = extra["spark.master"]
        if not master.startswith("local"):
            extra |= executor_settings(
                settings.executors_min, settings.executors_max, settings.slots
            )
            extra["spark.executor.memory"] = f"{settings.executor_memory_mb}m"
        if self.place.apart:
            extra["spark.scheduler.mode"] = "FAIR"  # no component waits for another's tasks
        log_file = self.place.log_file or checkpoint.parent / f"{checkpoint.name}.spark.log"
        log_file.parent.mkdir(parents=True, exist_ok=True)
        name = self.topology.name
        session = build_session(
            name, master, key_groups=settings.key_groups, log_file=log_file,
            quick_start=embedded, extra=extra,
        )  # fmt: skip
        self._resources.callback(session.stop)
        return session

    def _begin_history(self, store: HistoryStore) -> RunHistory:
        settings = self.settings
        history = store.begin(
            RunRecord(
                self.topology.name, self._policy.name, time.time(), settings.period_s,
                self.topology.max_latency_s, settings.slots, settings.dry_run,
                executors_min=settings.executors_min, executors_max=settings.executors_max,
                batch_interval_s=settings.batch_interval_s, foresight_s=settings.foresight_s,
                edges=self.running.built.topology.edges,
            )
        )  # fmt: skip
        self.run_id = history.run_id
        self._resources.callback(lambda: _end_history(history))
        return history

    def _start_loop(self) -> None:
        if isinstance(self.running, RunningApart):
            self._run_loop(self._loop_apart(self.running))
        else:
            self._run_loop(self._loop_together())

    def _loop_apart(self, running: RunningApart) -> Loop:
        """Components with processors of their own, as seed 003 has them."""
        settings = self.settings
        executors = SparkExecutors(self.session)
        slots = executors.slots_per_executor()
        local = str(self.session.sparkContext.master).startswith("local")
        least = len(running.apart.parts)
        most = max(least, slots * (1 if local else settings.executors_max))
        return Loop(
            self._clock, ApartMeasurer(running), ApartActuator(running, executors), self._history,
            self._policy, Limits(least, most, settings.aim * self.topology.max_latency_s),
            standard_guards(settings, slots), settings.period_s, settings.dry_run,
            settings.window, running.apart.edges, "space", self._step, self._shadows,
            Foresight(settings.foresight_s), given=running.parallelism(),
        )  # fmt: skip

    def _loop_together(self) -> Loop:
        settings = self.settings
        allocating = chosen_allocating(settings)
        self.placements = placements_of(self.running)
        obeying = self.running.inputs.values()
        ours = all({"shed", "cheaper", "interval_s"} <= source.orders for source in obeying)
        actuator = SparkActuator(
            self.session, self.placements, self.running.tell_parallelism,
            self.running.tell_sources if ours else None,
        )  # fmt: skip
        self.running.tell_parallelism(actuator.executors() * actuator.slots_per_executor())
        measurer = SparkMeasurer(
            self.running,
            (lambda: traffic_of(self.placements)) if allocating is not None else None,
        )
        slots = actuator.slots_per_executor()
        limits = Limits(
            settings.executors_min * slots,
            settings.executors_max * slots,
            settings.aim * self.topology.max_latency_s,
        )
        return Loop(
            self._clock, measurer, actuator, self._history, self._policy,
            limits, standard_guards(settings, slots), settings.period_s, settings.dry_run,
            settings.window, self._component_edges(), "time", self._step,
            self._shadows, Foresight(settings.foresight_s), allocating,
            resorting=chosen_resorting(settings, self.topology.variants, limits.max_latency_s),
            pacing=chosen_pacing(settings, limits.max_latency_s),
        )  # fmt: skip

    def _run_loop(self, loop: Loop) -> None:
        self._loop = loop
        self._kept = kept = KeptLoop(loop.run, self._clock, self._loop_died)
        kept.start()
        self._resources.callback(lambda: kept.join(JOIN_LIMIT_S))
        self._resources.callback(self._clock.stop)
        for placement in self.placements:
            self._resources.callback(placement.close)  # first: the loop may wait for a move

    def _loop_died(self, why: str) -> None:
        self._history.failed(FailureRecord(time.time(), "loop", f"begun again: {why}"))

    def _component_edges(self) -> tuple[tuple[str, str], ...]:
        home = {
            node: component.name
            for query in self.running.built.plan.queries
            for component in query.components
            for node in (component.name, *component.operators)
        }
        edges = [
            (home[upstream], home[operator])
            for query in self.running.built.queries
            for operator, upstreams in query.edges.items()
            for upstream in upstreams
        ]
        return tuple(dict.fromkeys(edge for edge in edges if edge[0] != edge[1]))

    def _step(self, step: Step) -> None:
        self.steps.append(step)
        self._follower.look(step.observation)
        self.slow_loop.look(step.observation)
        if self._on_step is not None:
            self._on_step(step)

    def advise_only(self, on: bool) -> None:
        """Let the loop decide without acting, or act again; the query goes on either way."""
        self._loop.advise_only(on)

    def rows(self, sink: str) -> list[Row]:
        """What a Memory sink holds."""
        return self.running.rows(sink)

    @property
    def streams(self) -> StreamsProgram:
        """Streams that join and leave while the topology runs."""
        return self.running.streams

    def wait(self, timeout_s: float | None = None) -> bool:
        """Until bounded streams are worked off or the time is over; raises if a query failed."""
        return self.running.wait(timeout_s)

    def finish(self) -> RunSummary:
        """End the loop, look once more at what it has not seen, and sum the run up."""
        self._clock.stop()
        for placement in self.placements:
            placement.close()
        self._kept.join(JOIN_LIMIT_S)
        self.running.settle()
        self._loop.look()
        self.slow_loop.propose_safely()
        return self.summary()

    @property
    def observations(self) -> list[Observation]:
        """What was observed so far."""
        return [step.observation for step in self.steps if step.observation is not None]

    def summary(self) -> RunSummary:
        """What the run came to so far."""
        return summarise_run(
            self.observations,
            self.steps,
            self.topology.max_latency_s,
            self.settings.executors_min,
            self.settings.executors_max,
        )


def _end_history(history: RunHistory) -> None:
    """A database that is away must not turn a complete run into a failed one."""
    try:
        history.end(time.time())
    except SQLAlchemyError as error:
        log.warning("the end of the run is not in the history: %s", first_line(error))
