"""A recorded run again in the simulator: as it was, to see how far to trust it, and otherwise."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from penstock.config import Settings
from penstock.control.actions import SetExecutors
from penstock.control.foresight import Foresight
from penstock.control.from_settings import policy_of, settings_of
from penstock.control.records import ActionRecord, RunRecord
from penstock.errors import InvalidInput
from penstock.model.decision import Decision, ScalingPlan
from penstock.model.observation import Observation
from penstock.model.start_up import after_start_up
from penstock.scaling.policies.policy import ScalingContext
from penstock.scaling.policies.registry import names
from penstock.scaling.policies.static import Static
from penstock.sim.calibration import LEAST_PERIODS, began_s, scenario_of, usable
from penstock.sim.run import SimulationResult, settings_in, simulate
from penstock.sim.scenario import Scenario

REPLAYS = 3
SKIPS_TRIED = 4  # up to half of a run
MOST_SIZES = 8  # static sizes tried; of more, some are left out
STATIC = "static"
QUANTILES = np.linspace(0.0125, 0.9875, 40)  # of each period, to put periods together


@dataclass(frozen=True)
class Fidelity:
    """Latency as recorded and as the same run has it in the simulator."""

    recorded_mean_s: float
    simulated_mean_s: float
    recorded_p95_s: float
    simulated_p95_s: float

    @property
    def mean_error(self) -> float:
        """Relative error of the mean latency."""
        return abs(self.simulated_mean_s - self.recorded_mean_s) / self.recorded_mean_s

    @property
    def p95_error(self) -> float:
        """Relative error of the 95th percentile."""
        return abs(self.simulated_p95_s - self.recorded_p95_s) / self.recorded_p95_s

    def within(self, tolerance: float) -> bool:
        """Whether both errors are known and at most so large."""
        return self.mean_error <= tolerance and self.p95_error <= tolerance


@dataclass(frozen=True)
class Candidate:
    """What a policy or a fixed size would have made of the load."""

    name: str
    in_time_share: float
    late_rows: int
    waiting_rows: int  # at the end: no result yet, and late if the bound has passed
    latency_mean_s: float
    latency_p95_s: float
    executor_seconds: float
    reconfigurations: int
    executors_most: int


@dataclass(frozen=True)
class Recorded:
    """Does what was done, at the ends of the periods in which it was done."""

    looks_ahead: ClassVar[bool] = False

    at_s: tuple[float, ...]
    processors: tuple[int, ...]
    name: str = field(default="recorded", init=False)

    def decide(self, context: ScalingContext) -> Decision[ScalingPlan]:
        """What was asked for last, whatever would be better."""
        newest, wanted = context.newest, context.current.processors
        if newest is not None:
            done = int(np.searchsorted(self.at_s, newest.at_s + newest.period_s / 2))
            wanted = self.processors[done - 1] if done else wanted
        return Decision(ScalingPlan(context.current.parallelism, wanted), ("as recorded",))


def recorded_policy(
    seen: Sequence[Observation], actions: Sequence[ActionRecord], slots: int
) -> Recorded:
    """The acts of a run on its executors; where it has none, what was seen of them.

    An executor that is asked for is there only later, and the scenario knows how much: what is seen
    at the end of a period says less.
    """
    start_s = began_s(seen)
    done = [(r.at_s, r.outcome.action) for r in actions if r.outcome.done]
    asked = [(at_s, a.total * slots) for at_s, a in done if isinstance(a, SetExecutors)]
    if not asked:
        asked = [(o.at_s - o.period_s, o.processors) for o in seen if o.processors]
    return Recorded(tuple(at - start_s for at, _ in asked), tuple(n for _, n in asked))


def replayed(
    run: RunRecord, observations: Sequence[Observation], actions: Sequence[ActionRecord], seed: int
) -> tuple[Fidelity, SimulationResult]:
    """The run as it was, and how near the simulator comes to what was measured.

    While rows pile up, it matters much when a batch happens to begin; so it is replayed several
    times, and the one in the middle counts.
    """
    seen = usable(observations, run)
    scenario = scenario_of(run, seen, actions, executors=_widest(run, seen), seed=seed)
    policy = recorded_policy(seen, actions, scenario.cluster.slots)
    results = [
        simulate(replace(scenario, seed=seed + number), policy, guards=())
        for number in range(REPLAYS)
    ]
    result = sorted(results, key=lambda one: latency_of(one.observations)[0])[REPLAYS // 2]
    recorded, simulated = latency_of(seen), latency_of(result.observations)
    return Fidelity(recorded[0], simulated[0], recorded[1], simulated[1]), result


def periods_after(
    run: RunRecord, observations: Sequence[Observation], skip_s: float | None = None
) -> list[Observation]:
    """The periods to stand on: without the first `skip_s` seconds, or without the start-up.

    Refused where too few are left.
    """
    if not observations:
        return usable(observations, run)
    if skip_s is None:
        left, what = after_start_up(observations), "the start-up"
    else:
        start_s = began_s(observations) + skip_s
        left = [o for o in observations if o.at_s - o.period_s >= start_s - 1e-6]
        what = f"the first {skip_s:g} s"
    if len(left) < LEAST_PERIODS:
        period_s = sorted(o.period_s for o in observations)[len(observations) // 2]
        lost_s = (len(observations) - len(left)) * period_s
        least_s = math.ceil(lost_s + LEAST_PERIODS * period_s)
        longer = f"record at least {least_s} s" if left else "record a longer run"
        raise InvalidInput(
            f"the run of {run.topology!r} holds {len(left)} periods after {what}; a replay needs "
            f"at least {LEAST_PERIODS}: {longer}, record more often (penstock run --period 1s), or "
            "leave out less with --skip."
        )
    return left


def trusted_from_s(
    run: RunRecord, observations: Sequence[Observation], actions: Sequence[ActionRecord],
    seed: int, tolerance: float,
) -> float | None:  # fmt: skip
    """How much more of the beginning to leave out, so that the rest is replayed well enough."""
    for tried in range(1, SKIPS_TRIED + 1):
        left = observations[tried * len(observations) // (2 * SKIPS_TRIED) :]
        if len(left) < LEAST_PERIODS:
            break
        if replayed(run, left, actions, seed)[0].within(tolerance):
            return began_s(left) - began_s(observations)
    return None


def _widest(run: RunRecord, seen: Sequence[Observation]) -> tuple[int, int]:
    numbers = [max(1, len(o.nodes)) for o in seen]
    return min(numbers), max(run.executors_max, *numbers)


def latency_of(observations: Sequence[Observation]) -> tuple[float, float]:
    """Mean and 95th percentile over periods, of which only mean, p95 and maximum are known.

    Within a period, latency is taken to rise evenly from its lowest to its mean at one half, on to
    its p95 and its maximum. Recorded and simulated periods are put together in the same way.
    """
    values: list[float] = []
    weights: list[float] = []
    total, rows = 0.0, 0
    for o in observations:
        latency = o.latency
        if latency is None or latency.count == 0 or not math.isfinite(latency.mean_s):
            continue
        total, rows = total + latency.mean_s * latency.count, rows + latency.count
        p95_s = latency.p95_s if math.isfinite(latency.p95_s) else latency.mean_s
        most_s = latency.max_s if math.isfinite(latency.max_s) else p95_s
        lowest_s = max(0.0, 2 * latency.mean_s - p95_s)
        shape = (lowest_s, latency.mean_s, max(latency.mean_s, p95_s), max(p95_s, most_s))
        values += np.interp(QUANTILES, (0.0, 0.5, 0.95, 1.0), shape).tolist()
        weights += [latency.count / len(QUANTILES)] * len(QUANTILES)
    if not rows:
        return math.nan, math.nan
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(np.asarray(weights)[order])
    place = int(np.searchsorted(reached, 0.95 * reached[-1]))
    return total / rows, float(np.asarray(values)[order][min(place, len(order) - 1)])


def candidates(
    scenario: Scenario, settings: Settings, policies: Sequence[str], sizes: Sequence[int]
) -> Iterator[tuple[Candidate, SimulationResult]]:
    """Each static size, then each policy, over the same rows."""
    for size in sizes:
        cluster = replace(scenario.cluster, executors=size, min_executors=size, max_executors=size)
        result = simulate(replace(scenario, cluster=cluster), Static(), settings=settings)
        yield _candidate(f"static {size}", result), result
    for name in policies:
        own = settings_of(name, settings)
        foresight = Foresight(own.foresight_s)
        policy = policy_of(settings_in(scenario, own))
        result = simulate(scenario, policy, settings=own, foresight=foresight)
        yield _candidate(name, result), result


def policies_named(wanted: str) -> tuple[str, ...]:
    """The policies of a comma-separated list, or all that decide something."""
    every = tuple(name for name in names() if name != STATIC)
    if wanted.strip() == "all":
        return every
    return tuple(dict.fromkeys(name.strip() for name in wanted.split(",")))


def sizes_between(fewest: int, most: int) -> tuple[int, ...]:
    """Static sizes to try: all of them where they are few.

    >>> sizes_between(1, 4), sizes_between(1, 100)[-1]
    ((1, 2, 3, 4), 100)
    """
    count = min(MOST_SIZES, most - fewest + 1)
    return tuple(sorted({round(size) for size in np.linspace(fewest, most, count)}))


def _candidate(name: str, result: SimulationResult) -> Candidate:
    bound_s, latency = result.scenario.max_latency_s, result.results
    share = latency.in_time_share(bound_s)
    late = 0 if math.isnan(share) else round((1 - share) * latency.count)
    # Rows that wait at the end have no latency yet; beyond the bound's worth they are late too.
    newest = result.observations[-1]
    overdue = max(0, result.held_rows - round(newest.arrival_rate_per_s * bound_s))
    counted = latency.count + overdue
    return Candidate(
        name,
        (latency.count - late) / counted if counted else math.nan,
        late + overdue,
        result.held_rows,
        latency.mean_s,
        latency.quantile_s(0.95),
        result.executor_seconds,
        len(result.changes),
        int(result.executors.max(initial=0)),
    )


def best(found: Sequence[Candidate], in_time_share: float) -> Candidate | None:
    """The cheapest that keeps the promise often enough; the simpler one on a tie."""
    enough = [c for c in found if c.in_time_share >= in_time_share]
    return min(
        enough, key=lambda c: (round(c.executor_seconds, 3), c.reconfigurations), default=None
    )
