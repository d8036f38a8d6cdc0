"""The loop: observe, decide, guard, act, remember.

It knows no platform: Spark and the simulator stand behind the same ports. Nothing that fails in it
may reach the query: each stage is caught at the loop's border, told in one line, remembered where
that is possible, and tried again in the next period.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from penstock.control.acting import Acting
from penstock.control.allocating import Allocating
from penstock.control.batch_interval import Pacing
from penstock.control.deciding import Cluster, Deciding
from penstock.control.failures import Border
from penstock.control.foresight import Foresight
from penstock.control.guards.basic import Guard
from penstock.control.last_resort import Resorting
from penstock.control.ports import Actuator, Clock, History, Measurer
from penstock.control.records import ActionRecord
from penstock.control.step import Step
from penstock.model.decision import Limits
from penstock.scaling.policies.policy import ScalingPolicy

log = logging.getLogger(__name__)


class Loop:
    """Runs a scaling policy against a cluster.

    `edges` and `sharing` are handed to the policy as they are. `on_step` sees every step, for a
    live view; it is a stage like the others and may fail. `shadows` decide on the same
    observations as the policy, and only the history hears of it. `given` is what components that
    run apart begin with; then their processors are carried out too, by SetParallelism.
    """

    def __init__(
        self,
        clock: Clock,
        measurer: Measurer,
        actuator: Actuator,
        history: History,
        policy: ScalingPolicy,
        limits: Limits,
        guards: Sequence[Guard],
        period_s: float,
        dry_run: bool = False,
        window: int = 60,
        edges: tuple[tuple[str, str], ...] = (),
        sharing: Literal["time", "space"] = "time",
        on_step: Callable[[Step], None] | None = None,
        shadows: Sequence[ScalingPolicy] = (),
        foresight: Foresight | None = None,
        allocating: Allocating | None = None,
        given: Mapping[str, int] | None = None,
        resorting: Resorting | None = None,
        pacing: Pacing | None = None,
    ) -> None:
        self._clock, self._measurer, self._actuator = clock, measurer, actuator
        self._history, self._policy, self._shadows = history, policy, tuple(shadows)
        self._period_s, self._dry_run, self._on_step = period_s, dry_run, on_step
        self._border = Border()
        self._deciding = Deciding(
            limits, guards, edges, sharing, window, foresight, divides=given is not None
        )
        self._acting = Acting(
            clock, actuator, self._border, self._deciding, limits, sharing, allocating, given,
            resorting, pacing,
        )  # fmt: skip

    def run(self, steps: int | None = None) -> None:
        """Step once a period until the clock is stopped, or `steps` times.

        Periods are counted from the start, so they do not drift; one that was overrun is skipped.
        """
        start_s, taken, period = self._clock.now_s(), 0, 0
        while steps is None or taken < steps:
            elapsed_s = self._clock.now_s() - start_s
            period = max(period + 1, int(elapsed_s // self._period_s) + 1)
            # Never longer than a period, should the machine's clock be set back.
            rest_s = min(self._period_s, period * self._period_s - elapsed_s)
            if not self._clock.wait_s(rest_s):
                return
            self.step()
            taken += 1

    def step(self) -> Step:
        """One period; it never raises what a port or the policy raised."""
        attempt = self._border.attempt
        self._border.failures = []
        at_s = self._clock.now_s()
        observation = attempt("measurer", self._measurer.observe, at_s)
        if observation is not None:
            self._deciding.saw(observation)
            attempt("history", partial(self._history.observed, observation), at_s)
        cluster = attempt("actuator", partial(Cluster.seen_by, self._actuator), at_s)
        step = Step(at_s, observation)
        # Without anything new a policy would only repeat its last answer, and repeat its act.
        if observation is not None and cluster is not None:
            deciding = partial(self._deciding.decide, at_s, cluster, self._policy, self._dry_run)
            record = attempt("policy", deciding, at_s)
            self._watch(at_s, cluster)
            if record is not None:
                step = self._acting.carry_out(step, record, cluster, self._dry_run)
        return self._remember(step)

    def advise_only(self, on: bool) -> None:
        """From the next period on, decide and remember without acting, or act again."""
        self._dry_run = on

    def look(self) -> Step:
        """A last period that decides nothing: what happened since the one before is remembered."""
        self._border.failures = []
        at_s = self._clock.now_s()
        observation = self._border.attempt("measurer", self._measurer.observe, at_s)
        if observation is not None:
            observed = partial(self._history.observed, observation)
            self._border.attempt("history", observed, at_s)
        return self._remember(Step(at_s, observation))

    def _watch(self, at_s: float, cluster: Cluster) -> None:
        """What the shadows would do from here; never carried out."""
        for policy in self._shadows:
            deciding = partial(self._deciding.decide, at_s, cluster, policy, self._dry_run, True)
            record = self._border.attempt(f"shadow {policy.name}", deciding, at_s)
            if record is not None:
                self._border.attempt("history", partial(self._history.decided, record), at_s)

    def _remember(self, step: Step) -> Step:
        """Write the period in one go; a history that fails must not keep the loop from acting."""
        attempt = self._border.attempt
        if step.decision is not None:
            attempt("history", partial(self._history.decided, step.decision), step.at_s)
        if step.allocation is not None:
            attempt("history", partial(self._history.allocated, step.allocation), step.at_s)
        for decided in step.room_decisions:
            attempt("history", partial(self._history.room_decided, decided), step.at_s)
        for outcome in (step.moved, step.outcome, step.divided, *step.room_outcomes):
            if outcome is not None:
                acted = ActionRecord(step.at_s, outcome)
                attempt("history", partial(self._history.acted, acted), step.at_s)
        for failure in tuple(self._border.failures):
            attempt("history", partial(self._history.failed, failure), step.at_s)
        attempt("history", self._history.flush, step.at_s)
        step = replace(step, failures=tuple(self._border.failures))
        log.log(logging.INFO if step.changes else logging.DEBUG, "%s", step.line())
        if self._on_step is not None:
            attempt("view", partial(self._on_step, step), step.at_s)
        return step
