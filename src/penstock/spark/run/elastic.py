"""A topology run under the loop: cluster, session, queries, controller, all ended together."""

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

from pyspark.sql import Row, SparkSession

from penstock.config import Settings
from penstock.control.controlled import Controlled
from penstock.control.controller import Controller
from penstock.control.experience import with_experience
from penstock.control.forms import tried_before
from penstock.control.from_settings import policy_of, proposal_rules_of, shadow_policies
from penstock.control.history.store import HistoryStore
from penstock.control.notebook import course_html
from penstock.control.shared_cluster import Portion, PortionMeasurer, SharedCluster
from penstock.control.step import Step
from penstock.control.summary import RunSummary
from penstock.model.decision import RoomDecision
from penstock.model.observation import Observation
from penstock.model.plan_document import Fusion
from penstock.model.topology import Topology
from penstock.spark.act.placement import Placement
from penstock.spark.compile.fused import PlanChoice
from penstock.spark.run import controlled
from penstock.spark.run.apart import RunningApart
from penstock.spark.run.before_start import (
    check_before_start,
    check_last_resort,
    check_monitoring_window,
    windows_of,
)
from penstock.spark.run.history import begin_history
from penstock.spark.run.place import Place, check_apart, choose_plan, open_session
from penstock.spark.run.shared_folder import (
    LaterHosts,
    folders_of,
    refuse_what_is_not_shared,
)
from penstock.spark.run.slow_loop import SlowLoop, carried_out, foretold_of
from penstock.spark.run.together import Pace, RunningTopology
from penstock.spark.run.warm_up import warm_up
from penstock.spark.sources.program import StreamsProgram


@dataclass(frozen=True)
class Among:
    """A place beside others: a session of its own on their cluster, and a portion of that."""

    name: str
    session: SparkSession
    shared: SharedCluster  # which it has joined
    began: Callable[[str, int], None]  # called with each batch's query and number
    ended: Callable[[str, int], None]

    def portion_of(self, subject: Controlled) -> Controlled:
        """What is controlled, with processors that the arbiter gives."""
        limits = replace(subject.limits, min_processors=1)
        self.shared.begin(self.name, limits)
        return replace(
            subject,
            limits=limits,
            measurer=PortionMeasurer(self.name, self.shared, subject.measurer),
            actuator=Portion(self.name, self.shared, subject.actuator),
        )


class ElasticRun:
    """Everything a run needs, as one context manager."""

    def __init__(
        self,
        topology: Topology,
        settings: Settings,
        place: Place = Place(),  # noqa: B008 - frozen
        on_step: Callable[[Step], None] | None = None,
        among: Among | None = None,
    ) -> None:
        """`among` others, on a session that they share."""
        topology.check()
        check_last_resort(topology, settings, place.apart)
        if place.apart:
            check_apart(place.apply)
        self.topology = topology
        self.settings = settings
        self.place = place
        self._on_step, self._among = on_step, among
        self._resources = ExitStack()
        self.placements: list[Placement] = []

    def __enter__(self) -> "ElasticRun":
        try:
            policy_of(self.settings)  # a name that is unknown is refused before Spark starts
            shadow_policies(self.settings)
            self._enter()
        except BaseException:
            self._resources.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def _enter(self) -> None:
        checkpoint = self._checkpoint()
        check_before_start(self.topology, self.settings, self.place, checkpoint)
        # A history that cannot be written is refused before anything runs, too. What is refused
        # otherwise has not made one that holds nothing.
        store = self._resources.enter_context(HistoryStore(self.settings.history))
        choice = choose_plan(
            self.place.plan, self.place.apply, store, self.topology.name, checkpoint
        )
        self.session = self._session(checkpoint)
        folders = folders_of(self.topology, checkpoint)
        hosts = refuse_what_is_not_shared(self.session, folders)
        self._later_hosts = LaterHosts(self.session, folders, hosts)
        choice, proposed = self._warmed(choice, checkpoint)
        self.running = self._resources.enter_context(self._queries(checkpoint, choice))
        subject = self._controlled()
        if subject.forms:
            tried = tried_before(store, self.topology.name, subject.forms)
            subject = replace(subject, form_costs=tried)
        history = begin_history(
            store, self.settings, self._resources,
            name=self.topology.name, max_latency_s=self.topology.max_latency_s,
            share=subject.limits.share, slots=subject.actuator.slots_per_executor(),
            edges=self.running.built.topology.edges,
        )  # fmt: skip
        self.run_id = history.run_id
        self.plan = tuple(carried_out(self.running.built, choice.expected))
        self.slow_loop = SlowLoop(
            self.running.built, history.room_decided, proposal_rules_of(self.settings),
            foretold_of(self.plan),
        )  # fmt: skip
        for decision in (*([proposed] if proposed is not None else []), *self.plan):
            history.room_decided(decision)
        settings = with_experience(
            self.settings, store, self.topology.name, subject.limits.max_latency_s, subject.sharing
        )
        self._controller = Controller(
            settings, subject, history, self.topology.max_latency_s, self._stepped
        )
        self._resources.callback(self._stop_controller)
        self._controller.start()

    def _session(self, checkpoint: Path) -> SparkSession:
        if self._among is not None:
            return self._among.session
        return open_session(
            self.topology.name, self.settings, self.place, checkpoint, self._resources,
            operators=len(self.topology.operators),
        )  # fmt: skip

    def _checkpoint(self) -> Path:
        if self.place.checkpoint is not None:
            return self.place.checkpoint
        made = tempfile.TemporaryDirectory(prefix="penstock-", ignore_cleanup_errors=True)
        return Path(self._resources.enter_context(made)) / "checkpoint"

    def _warmed(
        self, choice: PlanChoice, checkpoint: Path
    ) -> tuple[PlanChoice, RoomDecision | None]:
        """Warm code, and for `auto` without a proposal the plan that warming up speaks for."""
        if not self.place.warm_up or self.place.apart:
            return choice, None
        rules = proposal_rules_of(self.settings)
        made = warm_up(self.topology, self.session, choice, rules)
        begun = (checkpoint / "queries").is_dir()
        if made is None or self.place.plan != "auto" or choice.plan is not None or begun:
            return choice, None
        plan = made.plan
        assert isinstance(plan, Fusion)
        if plan.groups:
            warm_up(self.topology, self.session, PlanChoice(plan.groups))
        # Of a warm-up only the gain holds: its batches are not those of the run.
        gain = {"expected_gain": made.numbers["expected_gain"]}
        return PlanChoice(plan.groups, if_possible=True, expected={plan: gain}), made

    def _queries(self, checkpoint: Path, choice: PlanChoice) -> RunningTopology:
        running = self._made(checkpoint, choice)
        if self._among is not None:
            running.pool = self._among.name
            running.before_batch.append(self._among.began)
            running.after_batch.append(self._among.ended)
        running.when_built.append(
            lambda built: check_monitoring_window(policy_of(self.settings), windows_of(built))
        )
        return running

    def _made(self, checkpoint: Path, choice: PlanChoice) -> RunningTopology:
        pace = Pace(self.settings.batch_interval_s or 0.0, self.place.once)
        if not self.place.apart:
            return RunningTopology(
                self.topology, self.session, checkpoint, pace, choice=choice,
                accept_changes=self.place.accept_changes,
            )  # fmt: skip
        return RunningApart(
            self.topology, self.session, checkpoint, pace, processors=self.place.processors,
            max_rows=self.settings.channel_rows, accept_changes=self.place.accept_changes,
            choice=choice,
        )  # fmt: skip

    def _controlled(self) -> Controlled:
        if isinstance(self.running, RunningApart):
            if self.settings.allocation is not None:
                self.placements = controlled.placements_of(self.running)
                self.running.place_key_groups(self.placements)
            return controlled.apart(self.running, self.settings, self.placements)
        self.placements = controlled.placements_of(self.running)
        subject = controlled.together(self.running, self.settings, self.placements)
        return subject if self._among is None else self._among.portion_of(subject)

    def _stepped(self, step: Step) -> None:
        if step.observation is not None:
            self._later_hosts.look(node.name for node in step.observation.nodes)
        self.slow_loop.look(step.observation)
        if self._among is not None:
            self._among.shared.asked(self._among.name, step)
        if self._on_step is not None:
            self._on_step(step)

    def _stop_controller(self) -> None:
        for placement in self.placements:
            placement.close()  # first: the loop may wait for a move
        self._controller.stop()

    def advise_only(self, on: bool) -> None:
        """Let the loop decide without acting, or act again; the query goes on either way."""
        self._controller.advise_only(on)

    def rows(self, sink: str) -> list[Row]:
        """What a Memory sink holds."""
        return self.running.rows(sink)

    @property
    def streams(self) -> StreamsProgram:
        """Streams that join and leave while the topology runs."""
        return self.running.streams

    def source_notes(self) -> tuple[str, ...]:
        """What sources say that a person should know: no stream yet, a file that is not read."""
        notes = [
            f"source {name}: {note}"
            for name in self.running.inputs
            for status in self.running.sources.fresh_statuses(name)
            for note in status["notes"]
        ]
        return tuple(dict.fromkeys(notes))

    @property
    def steps(self) -> Sequence[Step]:
        """What the loop did: the newest periods; the history has all of them."""
        return self._controller.steps

    @property
    def observations(self) -> Sequence[Observation]:
        """What was observed in the steps that are held."""
        return self._controller.observations

    def wait(self, timeout_s: float | None = None) -> bool:
        """Until bounded streams are worked off or the time is over; raises if a query failed."""
        return self.running.wait(timeout_s)

    def finish(self) -> RunSummary:
        """End the loop, look once more at what it has not seen, and sum the run up."""
        self._stop_controller()
        self.running.settle()
        self._controller.look_once_more()
        self.slow_loop.propose_safely()
        return self.summary()

    def summary(self) -> RunSummary:
        """What the run came to so far."""
        return self._controller.summary()

    def _repr_html_(self) -> str:
        """As a notebook shows it; before it was entered it has no course."""
        name = f"run of {self.topology.name}"
        if not hasattr(self, "_controller"):
            return f"<p><b>{escape(name)}</b>: not started; use it as a context manager</p>"
        return course_html(name, self.steps, self.summary())
