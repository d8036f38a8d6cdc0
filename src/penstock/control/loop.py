"""The loop: observe, decide, guard, act, remember.

It knows no platform: Spark and the simulator stand behind the same ports. Nothing that fails in it
may reach the query: each stage is attempted, a failure is logged in one line, remembered where
that is possible, and the stage is tried again in the next period.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from penstock.control.acting import Acting
from penstock.control.controlled import Controlled
from penstock.control.deciding import Cluster, Deciding
from penstock.control.failures import Attempts
from penstock.control.ports import Clock, History
from penstock.control.records import ActionRecord
from penstock.control.rooms import Rooms
from penstock.control.step import Step

log = logging.getLogger(__name__)


class Loop:
    """Runs the rooms against what is controlled.

    `on_step` sees every step, for a live view; it is a stage like the others and may fail. It must
    not act: what changes anything goes through the actuator.
    """

    def __init__(
        self,
        controlled: Controlled,
        rooms: Rooms,
        *,
        clock: Clock,
        history: History,
        period_s: float,
        window: int = 60,
        dry_run: bool = False,
        on_step: Callable[[Step], None] | None = None,
    ) -> None:
        self._clock, self._history, self._rooms = clock, history, rooms
        self._measurer, self._actuator = controlled.measurer, controlled.actuator
        self._period_s, self._dry_run, self._on_step = period_s, dry_run, on_step
        self._attempts = Attempts()
        self._deciding = Deciding(controlled, rooms, window)
        self._acting = Acting(controlled, rooms, self._deciding, clock, self._attempts)

    def run(self, steps: int | None = None) -> None:
        """Step once a period until the clock is stopped, or `steps` times.

        Periods are counted from the start, so they do not drift; one that was overrun is skipped.
        """
        start_s, taken, period = self._clock.now_s(), 0, 0
        while steps is None or taken < steps:
            elapsed_s = self._clock.now_s() - start_s
            period = max(period + 1, int(elapsed_s // self._period_s) + 1)
            # Never longer than a period, should a clock be set back.
            rest_s = min(self._period_s, period * self._period_s - elapsed_s)
            if not self._clock.wait_s(rest_s):
                return
            self.step()
            taken += 1

    def step(self) -> Step:
        """One period; it never raises what a port or the policy raised."""
        attempt = self._attempts.attempt
        self._attempts.failures = []
        at_s = self._clock.now_s()
        observation = attempt("measurer", self._measurer.observe, at_s)
        if observation is not None:
            self._deciding.saw(observation)
            attempt("history", partial(self._history.observed, observation), at_s)
        cluster = attempt("actuator", partial(Cluster.seen_by, self._actuator), at_s)
        paid = self._deciding.paid if observation is not None else ()
        step = Step(at_s, observation, paid=paid)
        # Without anything new a policy would only repeat its last answer, and repeat its act.
        if observation is not None and cluster is not None:
            policy = self._rooms.policy
            deciding = partial(self._deciding.decide, at_s, cluster, policy, self._dry_run)
            record = attempt("policy", deciding, at_s)
            self._ask_shadows(at_s, cluster)
            if record is not None:
                step = self._acting.carry_out(step, record, cluster, self._dry_run)
        return self._remember(step)

    def advise_only(self, on: bool) -> None:
        """From the next period on, decide and remember without acting, or act again."""
        self._dry_run = on

    def look(self) -> Step:
        """A last period that decides nothing: what happened since the one before is remembered."""
        self._attempts.failures = []
        at_s = self._clock.now_s()
        observation = self._attempts.attempt("measurer", self._measurer.observe, at_s)
        if observation is not None:
            observed = partial(self._history.observed, observation)
            self._attempts.attempt("history", observed, at_s)
        return self._remember(Step(at_s, observation))

    def _ask_shadows(self, at_s: float, cluster: Cluster) -> None:
        """What the shadows would do from here; never carried out."""
        for policy in self._rooms.shadows:
            deciding = partial(self._deciding.decide, at_s, cluster, policy, self._dry_run, True)
            record = self._attempts.attempt(f"shadow {policy.name}", deciding, at_s)
            if record is not None:
                self._attempts.attempt("history", partial(self._history.decided, record), at_s)

    def _remember(self, step: Step) -> Step:
        """Write the period in one go; a history that fails must not keep the loop from acting."""
        attempt = self._attempts.attempt
        if step.decision is not None:
            attempt("history", partial(self._history.decided, step.decision), step.at_s)
        if step.allocation is not None:
            attempt("history", partial(self._history.allocated, step.allocation), step.at_s)
        for decided in (*step.room_decisions, *step.paid):
            attempt("history", partial(self._history.room_decided, decided), step.at_s)
        for outcome in (step.moved, step.outcome, step.divided, *step.room_outcomes):
            if outcome is not None:
                acted = ActionRecord(step.at_s, outcome)
                attempt("history", partial(self._history.acted, acted), step.at_s)
        for failure in tuple(self._attempts.failures):
            attempt("history", partial(self._history.failed, failure), step.at_s)
        attempt("history", self._history.flush, step.at_s)
        step = replace(step, failures=tuple(self._attempts.failures))
        log.log(logging.INFO if step.changes else logging.DEBUG, "%s", step.line())
        if self._on_step is not None:
            attempt("view", partial(self._on_step, step), step.at_s)
        return step
