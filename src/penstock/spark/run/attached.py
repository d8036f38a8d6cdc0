"""`penstock.attach`: the loop over a streaming query that was written without Penstock.

The query is not changed. Executors follow the micro-batch model; where something may not be done
here (another cluster manager, a setting), the decision is remembered as advice.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.config import Settings
from penstock.control.actions import MoveKeyGroups, SetExecutors
from penstock.control.controller import Controller
from penstock.control.experience import with_experience
from penstock.control.from_settings import policy_of
from penstock.control.history.store import HistoryStore
from penstock.control.most_wanted import MostWanted, OneOfSeveral
from penstock.control.notebook import course_html
from penstock.control.step import Step
from penstock.control.summary import RunSummary
from penstock.errors import InvalidInput
from penstock.model.decision import USUAL_SHARE
from penstock.spark.act.attached_placements import AttachedPlacements
from penstock.spark.act.executors import SparkExecutors, executors_given_at_once
from penstock.spark.act.placement import cannot_place
from penstock.spark.run import controlled
from penstock.spark.run.before_start import (
    check_attached,
    check_interval,
    check_monitoring_window,
    trigger_of_queries,
    windows_of_queries,
)
from penstock.spark.run.history import begin_history

log = logging.getLogger(__name__)

# What an attached controller may be asked to do; the rest needs sources of Penstock's own.
CONTROLLED = {SetExecutors.NAME: "the number of executors", MoveKeyGroups.NAME: "where state lives"}


def greeting(cannot: Mapping[str, str], settings: Settings, given: int = 0) -> str:
    """What the controller will do and what it will only advise, in one line.

    `given` executors came at the start, all that the session may have, because it was not built to
    begin with fewer.

    >>> greeting({"key_groups": "no stores"}, Settings(executors_max=8, allocation="milp"))
    'changes the number of executors (1 to 8); only advises on where state lives (no stores)'
    """
    asked = [SetExecutors.NAME, *([MoveKeyGroups.NAME] if settings.allocation is not None else [])]
    bounds = (settings.executors_min, settings.executors_max)
    span = f" ({bounds[0]} to {bounds[1]})"
    does = [
        CONTROLLED[name] + (span if name == SetExecutors.NAME else "")
        for name in asked
        if name not in cannot and not settings.dry_run
    ]
    advises = [
        f"{CONTROLLED[name]} ({cannot.get(name, 'dry run').rstrip('.')})"
        for name in asked
        if name in cannot or settings.dry_run
    ]
    said = [f"changes {' and '.join(does)}"] if does else []
    said += [f"only advises on {' and '.join(advises)}"] if advises else []
    if given > settings.executors_min:
        said.append(
            f"the cluster gave this session all {given} executors it may have at once; to begin "
            f"with {bounds[0]}, build it with penstock.session_settings(executors={bounds})"
        )
    return "; ".join(said)


@dataclass(frozen=True)
class Among:
    """A query among others of its session, whose loops share the executors."""

    query: str
    wanted: MostWanted


class Attached:
    """A controller beside a query; `detach` ends it and leaves the query as it is.

    It ends by itself with the program: its thread keeps nothing alive.
    """

    def __init__(
        self,
        target: StreamingQuery | SparkSession,
        max_latency_s: float,
        settings: Settings,
        among: Among | None = None,
    ) -> None:
        """`among` the queries of a session it is the one of that name, with a loop of its own."""
        check_attached(settings)
        self._among = among
        self.settings, self.max_latency_s = settings, max_latency_s
        self._session = _session_of(target)
        self._target = target
        self._resources = ExitStack()
        try:
            self._start()
        except BaseException:
            self._resources.close()
            raise

    def _start(self) -> None:
        running = self.queries()
        interval_s = trigger_of_queries(running)  # the query's own, which policies plan with
        share = USUAL_SHARE if self.settings.share is None else self.settings.share
        check_interval(interval_s, share, self.max_latency_s, "the trigger of the query")
        self.settings = replace(self.settings, batch_interval_s=interval_s or None)
        windows = windows_of_queries(running)
        check_monitoring_window(policy_of(self.settings), windows, "query")
        store = self._resources.enter_context(HistoryStore(self.settings.history))
        places = self.settings.allocation is not None
        placements = self._placed() if places else None
        subject = controlled.attached(
            self._session, self.queries, self.max_latency_s, self.settings, placements
        )
        name = self._name()
        cannot, given = subject.actuator.unavailable(), executors_given_at_once(self._session)
        noteworthy = cannot.keys() & CONTROLLED.keys() or given > self.settings.executors_min
        log.log(
            logging.WARNING if noteworthy else logging.INFO,
            "attached to %s: %s", name, greeting(cannot, self.settings, given),
        )  # fmt: skip
        history = begin_history(
            store, self.settings, self._resources, name=name, max_latency_s=self.max_latency_s,
            share=subject.limits.share, slots=subject.actuator.slots_per_executor(),
        )  # fmt: skip
        self.run_id = history.run_id
        settings = with_experience(self.settings, store, name, subject.limits.max_latency_s)
        on_step = None
        if self._among is not None:
            actuator = OneOfSeveral(name, self._among.wanted, subject.actuator)
            subject = replace(subject, actuator=actuator)
            on_step = partial(self._among.wanted.asked, name)
            self._resources.callback(self._among.wanted.leave, name)
        self._controller = Controller(settings, subject, history, self.max_latency_s, on_step)
        self._resources.callback(self._controller.stop)
        if placements is not None:
            self._resources.callback(placements.close)  # first: the loop may wait for a move
        self._controller.start()

    def _placed(self) -> AttachedPlacements | None:
        """Where key groups live; None where they cannot be moved, which the first line says."""
        if cannot_place(self._session):
            return None
        several = isinstance(self._target, SparkSession)
        return AttachedPlacements(self._session, several)

    def queries(self) -> Sequence[StreamingQuery]:
        """The queries that are followed: the one given, or all that run in the session."""
        if isinstance(self._target, SparkSession):
            active = self._session.streams.active
            wanted = self._among
            return [q for q in active if wanted is None or q.name == wanted.query]
        return [self._target] if self._target.isActive else []

    def _name(self) -> str:
        if self._among is not None:
            return self._among.query
        if isinstance(self._target, SparkSession):
            return str(self._session.sparkContext.appName)
        return self._target.name or f"query-{str(self._target.id)[:8]}"

    @property
    def steps(self) -> Sequence[Step]:
        """What the controller did: the newest periods; the history has all of them."""
        return self._controller.steps

    def summary(self) -> RunSummary:
        """What it came to so far."""
        return self._controller.summary()

    def _repr_html_(self) -> str:
        """As a notebook shows it: the course of the newest periods, and what it came to so far."""
        return course_html(f"attached to {self._name()}", self.steps, self.summary())

    def detach(self) -> RunSummary:
        """End the controller; the query goes on with what it has."""
        self._resources.close()
        return self.summary()

    def __enter__(self) -> "Attached":
        return self

    def __exit__(self, *_: object) -> None:
        self.detach()


class AttachedSeveral(Mapping[str, Attached]):
    """A controller for each query of a session that has a bound of its own, by its name.

    The session has as many executors as the query that needs most of them.
    """

    def __init__(
        self, session: SparkSession, bounds_s: Mapping[str, float], settings: Settings
    ) -> None:
        session = _session_of(session)
        running = sorted(str(query.name) for query in session.streams.active if query.name)
        for name in bounds_s:
            if name not in running:
                raise InvalidInput(
                    f"attach(max_latency) names query {name!r}, which does not run; running: "
                    f"{', '.join(running) or 'none that has a name'}."
                )
        self._resources, wanted = ExitStack(), MostWanted(SparkExecutors(session))
        self._attached: dict[str, Attached] = {}
        try:
            for name, bound_s in bounds_s.items():
                one = Attached(session, bound_s, settings, Among(name, wanted))
                self._resources.callback(one.detach)
                self._attached[name] = one
        except BaseException:
            self._resources.close()
            raise

    def __getitem__(self, name: str) -> Attached:
        return self._attached[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._attached)

    def __len__(self) -> int:
        return len(self._attached)

    def summary(self) -> dict[str, RunSummary]:
        """What it came to so far, by query."""
        return {name: one.summary() for name, one in self._attached.items()}

    def _repr_html_(self) -> str:
        """As a notebook shows it: each of them below the other."""
        return "".join(one._repr_html_() for one in self._attached.values())

    def detach(self) -> dict[str, RunSummary]:
        """End the controllers; the queries go on with what they have."""
        self._resources.close()
        return self.summary()

    def __enter__(self) -> "AttachedSeveral":
        return self

    def __exit__(self, *_: object) -> None:
        self.detach()


def _session_of(target: object) -> SparkSession:
    if isinstance(target, SparkSession):
        return target
    if isinstance(target, StreamingQuery):
        return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    if type(target).__module__.startswith("pyspark.sql.connect"):
        raise InvalidInput(
            "attach(target) is of Spark Connect, whose driver is another program that a client "
            "cannot change; call attach there, or build the session with master() in place of "
            "remote()."
        )
    raise InvalidInput(
        f"attach(target) is {type(target).__name__}; give a running StreamingQuery or the session."
    )
