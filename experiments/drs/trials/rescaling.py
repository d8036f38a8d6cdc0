"""DRS at work: one re-allocation at T_ra (s.V-C2), and a load that changes (s.V-C3)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.drs.workloads.applications import (
    K_MAX,
    VLD_HEAVY_S,
    VLD_LIGHT_S,
    Allocation,
    Application,
    fpd,
    frame_rates,
    vld,
)
from penstock.model.decision import Decision, ScalingPlan
from penstock.model.observation import Observation
from penstock.scaling.policies.drs import Drs
from penstock.scaling.policies.policy import ScalingContext, ScalingPolicy
from penstock.sim.run import simulate
from penstock.workloads.profiles import RateProfile, steps

PAUSE_S = 3.0  # of an operator that is resized: "a few seconds" (s.V-C2)
RUN_MIN, T_RA_MIN = 27, 14
FPD_MIN_S = 10.0  # a "minute" of FPD: its tuples are a hundred times as many
STARTS: dict[str, tuple[Allocation, ...]] = {
    "VLD": ((10, 11, 1), (8, 12, 2), (11, 9, 2)),
    "FPD": ((6, 13, 3), (8, 12, 2), (7, 13, 2)),
}
T_MAX_S, T_MIN_S = 1.0, 0.45
FIRST: Allocation = (3, 5, 1)
# Minutes at frames a second, changes at minute 6, 21 and 34 (Fig. 9a); a burst (Fig. 9b).
LONG_TERM = ((6, 6.0), (15, 12.0), (13, 6.0), (14, 18.0))
SHORT_TERM = ((6, 6.0), (3, 12.0), (18, 6.0))


@dataclass(frozen=True)
class SinceStart:
    """A policy that counts T_ra from the start of the run, as the experiments do."""

    inner: ScalingPolicy

    @property
    def looks_ahead(self) -> bool:
        return self.inner.looks_ahead

    @property
    def name(self) -> str:
        return self.inner.name

    def decide(self, context: ScalingContext) -> Decision[ScalingPlan]:
        """As the policy does, when the first plan came into force at time 0."""
        at_s = context.changed_at_s
        return self.inner.decide(replace(context, changed_at_s=0.0 if at_s is None else at_s))


@dataclass(frozen=True)
class Run:
    """A run by minutes: sojourn times, and when which allocation came into force."""

    allocations: tuple[tuple[int, ...], ...]  # at the end of each minute
    latency_s: tuple[float, ...]

    @property
    def changes(self) -> tuple[int, ...]:
        """Minutes at whose end a re-allocation was decided; it is seen one later."""
        pairs = zip(self.allocations, self.allocations[1:], strict=False)
        return tuple(minute for minute, (a, b) in enumerate(pairs, start=1) if a != b)

    def mean_s(self, since_min: int) -> float:
        """Mean sojourn time after a minute."""
        return float(np.nanmean(self.latency_s[since_min:]))


def reallocated(app: str, start: Allocation, seed: int, minutes: int = RUN_MIN) -> Run:
    """D3: optimisation (6) with all processors in use, a re-allocation at most once."""
    minute_s = FPD_MIN_S if app == "FPD" else 60.0
    duration_s = minutes * minute_s
    if app == "FPD":
        application = fpd(duration_s)
    else:
        application = vld(VLD_HEAVY_S, frame_rates(duration_s, seed), duration_s)
    policy = Drs(
        objective="processors", reallocate_after_s=T_RA_MIN * minute_s, smoothing_window=6,
        correct=False,
    )  # fmt: skip
    return _run(application, start, seed, policy, minute_s, spare=0)


def followed(phases: Sequence[tuple[int, float]], window: int, seed: int, bulk: int = 1) -> Run:
    """D4: optimisation (8) under changing frame rates, T_ra = w minutes, as measured only.

    The features of a frame come to the matcher in `bulk` tuples at once.
    """
    profile: RateProfile = steps([(60.0 * minutes, rate) for minutes, rate in phases])
    duration_s = 60.0 * sum(minutes for minutes, _ in phases)
    application = vld(VLD_LIGHT_S, profile, duration_s, bulk=bulk)
    policy = Drs(
        reallocate_after_s=60.0 * window, smoothing_window=window, predictive=False, correct=False,
        min_latency_share=T_MIN_S / T_MAX_S,
    )  # fmt: skip
    return _run(application, FIRST, seed, policy, 60.0, spare=K_MAX - sum(FIRST))


def _run(
    application: Application,
    start: Allocation,
    seed: int,
    policy: ScalingPolicy,
    minute_s: float,
    spare: int,
) -> Run:
    scenario = application.allocated(start, seed, spare)
    cluster = replace(scenario.cluster, pause_s=PAUSE_S if minute_s == 60 else PAUSE_S / 60)
    scenario = replace(scenario, cluster=cluster, period_s=minute_s, max_latency_s=T_MAX_S)
    # T_ra is the only thing that holds a decision back: no guards.
    result = simulate(scenario, SinceStart(policy), guards=())
    return Run(
        tuple(_allocation(seen, application.operators) for seen in result.observations),
        tuple(
            seen.latency.mean_s if seen.latency is not None else np.nan
            for seen in result.observations
        ),
    )


def _allocation(seen: Observation, operators: Sequence[str]) -> tuple[int, ...]:
    running = {component.name: component.parallelism for component in seen.components}
    return tuple(running[name] for name in operators)
