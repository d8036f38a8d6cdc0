"""A scenario under the real loop and a policy, from its start to its end."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from penstock.config import Settings
from penstock.config.settings import check_schedule
from penstock.control.assembly import assemble_loop, planned_limits, rooms_for
from penstock.control.controlled import Controlled
from penstock.control.foresight import Foresight
from penstock.control.guards.guard import Guard
from penstock.control.ports import History
from penstock.control.records import ActionRecord, AllocationRecord, DecisionRecord, FailureRecord
from penstock.control.step import Step
from penstock.errors import documented
from penstock.model.decision import RoomDecision
from penstock.model.observation import Observation
from penstock.scaling.forms import FormCosts
from penstock.scaling.policies.policy import ScalingPolicy
from penstock.scaling.policies.registry import has_option
from penstock.sim.earlier import calendar_of
from penstock.sim.scenario import Scenario
from penstock.sim.tally import Results
from penstock.sim.world import SimulatedWorld


@dataclass(frozen=True)
class SimulationResult:
    """What a run did; latencies of all results as columns.

    Executor-seconds are those in which executors were there; paid are also those of their start-up.
    With selectivities of 1 and no copies, arrived rows are results, held and shed rows together.
    """

    scenario: Scenario
    policy: str
    steps: tuple[Step, ...]
    results: Results
    arrived_rows: int
    held_rows: int
    executor_seconds: float
    shed_rows: int = 0
    paid_executor_seconds: float = 0.0

    @property
    def observations(self) -> tuple[Observation, ...]:
        """One a period."""
        return tuple(step.observation for step in self.steps if step.observation is not None)

    @property
    def changes(self) -> tuple[Step, ...]:
        """Periods in which executors were added or removed."""
        return tuple(step for step in self.steps if step.outcome is not None and step.outcome.done)

    @property
    def executors(self) -> NDArray[np.int64]:
        """Executors at the end of each observed period, drained ones included."""
        return np.asarray([len(seen.nodes) for seen in self.observations], dtype=np.int64)

    @property
    def in_time_share(self) -> float:
        """Share of results within the latency bound; NaN without results."""
        return self.results.in_time_share(self.scenario.max_latency_s)

    @property
    def static_executor_seconds(self) -> tuple[float, float]:
        """What the least and the greatest number of executors would have used."""
        cluster, duration_s = self.scenario.cluster, self.scenario.duration_s
        return cluster.min_executors * duration_s, cluster.max_executors * duration_s


def settings_in(scenario: Scenario, settings: Settings) -> Settings:
    """The settings with what the scenario says itself, so that policies plan with that.

    How often is decided, when batches start, the processors of an executor, and what an earlier run
    saw.
    """
    options = settings.policy_options
    calendar, learnt = calendar_of(scenario), options.get("calendar")
    if calendar is not None and has_option(settings.policy, "calendar") and not learnt:
        options = {**options, "calendar": calendar}
    return replace(
        settings,
        policy_options=options,
        period_s=scenario.period_s,
        batch_interval_s=scenario.batch.trigger_s or None,
        slots=scenario.cluster.slots,
    )


IN_A_SCENARIO = ("min_executors of scenario {!r}", "max_executors of scenario {!r}")
AS_OPTIONS = ("executors-min", "executors-max")


def check_schedule_in(
    scenario: Scenario, settings: Settings, bounds: tuple[str, str] = IN_A_SCENARIO
) -> None:
    """Refuse a schedule that the cluster of the scenario has no room for.

    `bounds` is what the user knows its least and greatest size by.
    """
    if settings.schedule is None:
        return
    least, most = (name.format(scenario.name) for name in bounds)
    names = {"schedule": "schedule", "executors_min": least, "executors_max": most}
    values = {
        "schedule": settings.schedule,
        "executors_min": scenario.cluster.min_executors,
        "executors_max": scenario.cluster.max_executors,
    }
    with documented("options"):
        check_schedule(values, names.__getitem__)


class Forgetful:
    """A History that keeps nothing: the result of a simulation holds it all."""

    def observed(self, observation: Observation) -> None:
        """Forget."""

    def decided(self, record: DecisionRecord) -> None:
        """Forget."""

    def allocated(self, record: AllocationRecord) -> None:
        """Forget."""

    def room_decided(self, decision: RoomDecision) -> None:
        """Forget."""

    def acted(self, record: ActionRecord) -> None:
        """Forget."""

    def failed(self, record: FailureRecord) -> None:
        """Forget."""

    def flush(self) -> None:
        """Forget."""


def simulate(
    scenario: Scenario,
    policy: ScalingPolicy,
    *,
    settings: Settings | None = None,
    guards: Sequence[Guard] | None = None,
    history: History | None = None,
    on_step: Callable[[Step], None] | None = None,
    shadows: Sequence[ScalingPolicy] = (),
    foresight: Foresight | None = None,
    keep: bool = True,
    form_costs: FormCosts = FormCosts(),  # noqa: B008 - frozen
) -> SimulationResult:
    """Run a scenario from start to end; deterministic from the scenario's seed.

    Period and executors are the scenario's; `settings` gives cooldowns, steps and the window, and
    `guards` replaces the standard ones. Without `keep` the result has no steps and no latencies,
    so that its size does not grow with the scenario; `on_step` sees each step either way.
    """
    settings = settings_in(scenario, settings or Settings())
    limits = planned_limits(
        settings,
        scenario.limits.min_processors,
        scenario.limits.max_processors,
        scenario.max_latency_s,
        scenario.limits.share,
    )
    world = SimulatedWorld(scenario, keep, limits.share)
    steps: deque[Step] = deque(maxlen=None if keep else 0)

    def look(step: Step) -> None:
        steps.append(step)
        if on_step is not None:
            on_step(step)

    subject = Controlled(
        measurer=world,
        actuator=world,
        limits=limits,
        edges=world.network.component_edges(),
        sharing=scenario.sharing,
        parallelism=world.parallelism(),
        cheaper_forms=scenario.variants,
        forms=scenario.forms,
        form_costs=form_costs,
    )
    rooms = replace(
        rooms_for(settings, subject, policy=policy, guards=guards),
        shadows=tuple(shadows),
        foresight=foresight,
    )
    loop = assemble_loop(
        settings, subject, rooms, clock=world, history=history or Forgetful(), on_step=look
    )
    loop.run()
    rest = world.observe()  # what is left when the duration is not a multiple of the period
    if rest is not None:
        steps.append(Step(rest.at_s, rest))
    return SimulationResult(
        scenario,
        policy.name,
        tuple(steps),
        Results.joined(world.results),
        world.arrived_rows,
        world.held_rows,
        world.cluster.node_seconds(scenario.duration_s),
        world.shed_rows,
        world.cluster.paid_seconds(scenario.duration_s),
    )
