"""One workflow under one policy, and what came of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.scaling.workloads.streams import Knots, stream
from experiments.scaling.workloads.workflows import SOURCE, Workflow
from penstock.model.decision import Decision, ScalingPlan
from penstock.model.observation import Floats, Observation
from penstock.scaling.policies.policy import ScalingContext, ScalingPolicy
from penstock.sim.run import simulate
from penstock.sim.scenario import ClusterSpec, Scenario, SourceSpec

TIMEOUT_S = 30.0  # an element that took longer is lost
PERIOD_S = 10.0
PAUSE_S = 10.0  # one monitoring interval: a resized operator takes no element meanwhile
OTHER_PAUSES_S = (5.0, 30.0)  # shown beside it
MOST_TASKS = 64
QUICK_SHRINK = 6.0


@dataclass(frozen=True)
class Settled:
    """A policy that waits until its last change is done and was measured for one interval.

    No engine begins a reconfiguration while one is under way, and a policy that judged an operator
    by the time it stands still would resize it for ever.
    """

    inner: ScalingPolicy
    wait_s: float

    @property
    def looks_ahead(self) -> bool:
        return self.inner.looks_ahead

    @property
    def name(self) -> str:
        return self.inner.name

    def decide(self, context: ScalingContext) -> Decision[ScalingPlan]:
        """As the policy does, or what runs."""
        if context.in_force_s < self.wait_s:
            return Decision(context.current, ("the last change is under way",))
        return self.inner.decide(context)


@dataclass(frozen=True)
class Outcome:
    """A run: shares, latency, processors and what changed."""

    lost_share: float  # of all results due, those not there within the timeout
    latency_s: float  # mean of the results there are
    units: float  # processors, mean over time
    cpu_points: float  # reserved, mean over time
    reconfigurations: int  # periods in which some operator was resized
    resizes: Mapping[str, int]
    most: Mapping[str, int]  # the largest degree of each operator
    held_rows: int
    rate_per_s: Floats
    total_units: Floats
    latency_by_period_s: Floats
    at_s: Floats

    @property
    def congested(self) -> bool:
        """Whether more is held in the end than comes in one timeout."""
        return self.held_rows > TIMEOUT_S * float(self.rate_per_s[-6:].mean())


def trial(
    workflow: Workflow,
    knots: Knots,
    policy: ScalingPolicy,
    seed: int,
    degrees: Mapping[str, int],
    shrink: float = 1.0,
    period_s: float = PERIOD_S,
    pause_s: float = PAUSE_S,
) -> Outcome:
    """Run a workflow over a stream from these degrees on; nothing but the policy holds it back."""
    profile = stream(knots, seed, shrink)
    total = sum(degrees.values())
    scenario = Scenario(
        workflow.name, profile.duration_s, TIMEOUT_S, (SourceSpec(SOURCE, profile),),
        workflow.started(degrees),
        ClusterSpec(total, len(workflow.operators), MOST_TASKS, pause_s=pause_s), "space",
        period_s=period_s, jobs_per_step=16, seed=seed,
    )  # fmt: skip
    result = simulate(scenario, Settled(policy, pause_s + period_s), guards=())
    seen = result.observations
    tasks = {
        one.name: np.array([_degree(observation, one.name) for observation in seen])
        for one in workflow.operators
    }
    resizes = {name: int((np.diff(degree) != 0).sum()) for name, degree in tasks.items()}
    changed = np.array([np.diff(degree) != 0 for degree in tasks.values()]).any(axis=0)
    due = result.arrived_rows * workflow.results_per_row
    in_time = result.in_time_share * result.results.count if result.results.count else 0.0
    points = sum(degree * workflow.cpu_points[name] for name, degree in tasks.items())
    return Outcome(
        lost_share=max(0.0, 1.0 - in_time / due),
        latency_s=result.results.mean_s,
        units=float(np.mean(sum(tasks.values()))),
        cpu_points=float(np.mean(points)),
        reconfigurations=int(changed.sum()),
        resizes=resizes,
        most={name: int(degree.max()) for name, degree in tasks.items()},
        held_rows=result.held_rows,
        rate_per_s=_column(seen, lambda one: one.arrival_rate_per_s),
        total_units=np.asarray(sum(tasks.values()), dtype=np.float64),
        latency_by_period_s=_column(seen, lambda o: o.latency.mean_s if o.latency else np.nan),
        at_s=_column(seen, lambda one: one.at_s),
    )


def shrink_of(quick: bool) -> float:
    """By how much streams are shortened."""
    return QUICK_SHRINK if quick else 1.0


def less_cpu(ours: Sequence[Outcome], theirs: Sequence[Outcome]) -> list[float]:
    """The share of CPU points saved against other runs, seed by seed."""
    return [1 - a.cpu_points / b.cpu_points for a, b in zip(ours, theirs, strict=True)]


def _degree(observation: Observation, name: str) -> int:
    return next(one.parallelism for one in observation.components if one.name == name)


def _column(seen: tuple[Observation, ...], value: Callable[[Observation], float]) -> Floats:
    return np.array([value(observation) for observation in seen], dtype=np.float64)
