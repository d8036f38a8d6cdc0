"""Policies side by side on a scenario, with what one who knows the load would have needed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache

import numpy as np

from penstock.config import Settings
from penstock.control.foresight import Foresight
from penstock.control.from_settings import policy_of
from penstock.errors import InvalidInput
from penstock.sim.clairvoyant import Clairvoyant
from penstock.sim.following import Followed, follow, periods
from penstock.sim.foretold import NOTHING_FORETOLD, Calibration, calibration
from penstock.sim.run import settings_in, simulate
from penstock.sim.scenario import Scenario

CLAIRVOYANT, STATIC_MIN, STATIC_MAX = "clairvoyant", "static minimum", "static maximum"
PRICE_RISE, MOST_RISES = 1.5, 24


@dataclass(frozen=True)
class Score:
    """How one did; executors are paid for from when they are asked for."""

    scenario: str
    seed: int
    policy: str
    in_time_share: float
    latency_p99_s: float
    executor_seconds: float
    reconfigurations: int
    failures: tuple[str, ...] = ()  # of stages of the loop
    foretold: Calibration = NOTHING_FORETOLD


@dataclass(frozen=True)
class References:
    """What policies are compared with: the clairvoyant, and sizes that never change."""

    clairvoyant: Score
    at_least: float  # executor-seconds of any plan that keeps the share, by the flow of batches
    static_min: Score
    static_min_executors: int
    static_max: Score

    @property
    def scores(self) -> tuple[Score, Score, Score]:
        """All three."""
        return self.clairvoyant, self.static_min, self.static_max


@dataclass(frozen=True)
class Contest:
    """A scenario with a seed: the references, and each policy."""

    scenario: Scenario
    references: References
    scores: tuple[Score, ...]

    def ratio(self, score: Score) -> float:
        """Executor-seconds over those of the clairvoyant."""
        return score.executor_seconds / self.references.clairvoyant.executor_seconds


def check(scenario: Scenario) -> None:
    """Refuse what has no clairvoyant."""
    if scenario.sharing != "time":
        raise InvalidInput(
            f"scenario {scenario.name!r} has sharing = 'space'; the arena needs 'time', as its "
            "clairvoyant plans micro-batches."
        )


def run_policy(scenario: Scenario, settings: Settings) -> Score:
    """A scenario under the policy of some settings."""
    result = simulate(
        scenario,
        policy_of(settings_in(scenario, settings)),
        settings=settings,
        foresight=Foresight(settings.foresight_s),
    )
    failures = (f"{f.stage}: {f.message}" for step in result.steps for f in step.failures)
    return Score(
        scenario.name, scenario.seed, result.policy, result.in_time_share,
        result.results.quantile_s(0.99), result.paid_executor_seconds, len(result.changes),
        tuple(failures), calibration(result),
    )  # fmt: skip


def run_references(scenario: Scenario) -> References:
    """The clairvoyant and the static sizes, each simulated."""

    @cache
    def static(executors: int) -> Score:
        name = STATIC_MAX if executors == greatest else STATIC_MIN
        return _score(scenario, name, follow(scenario, [executors] * periods(scenario)))

    least, greatest = scenario.cluster.min_executors, scenario.cluster.max_executors
    enough = greatest
    while least < enough and static(greatest).in_time_share >= scenario.share:
        middle = (least + enough) // 2
        if static(middle).in_time_share >= scenario.share:
            enough = middle
        else:
            least = middle + 1
    plan, at_least = _clairvoyant(scenario)
    return References(
        plan, at_least, replace(static(enough), policy=STATIC_MIN), enough, static(greatest)
    )


def _clairvoyant(scenario: Scenario) -> tuple[Score, float]:
    """The first plan of rising prices of lateness that keeps the share when simulated.

    The flow knows no chance, so its cheapest plan may miss the share by a little. Where no plan
    keeps it, the one with the most in time.
    """
    planner = Clairvoyant(scenario)
    plan = first = planner.cheapest()
    best = _score(scenario, CLAIRVOYANT, follow(scenario, plan.sizes))
    for _ in range(MOST_RISES):
        if best.in_time_share >= scenario.share:
            break
        plan, tried = planner.plan(plan.price * PRICE_RISE), plan
        if plan.sizes == tried.sizes:
            continue
        found = _score(scenario, CLAIRVOYANT, follow(scenario, plan.sizes))
        best = found if found.in_time_share > best.in_time_share else best
    return best, first.at_least


def _score(scenario: Scenario, name: str, followed: Followed) -> Score:
    results = followed.results
    return Score(
        scenario.name, scenario.seed, name, results.in_time_share(scenario.max_latency_s),
        results.quantile_s(0.99), followed.paid_executor_seconds, followed.reconfigurations,
    )  # fmt: skip


def averaged(contests: Sequence[Contest]) -> Contest:
    """The mean over the seeds of one scenario."""
    references = [contest.references for contest in contests]
    first = contests[0]
    policies = [_mean(scores) for scores in zip(*(c.scores for c in contests), strict=True)]
    clairvoyant, static_min, static_max = (
        _mean(scores) for scores in zip(*(r.scores for r in references), strict=True)
    )
    return Contest(
        first.scenario,
        References(
            clairvoyant,
            float(np.mean([r.at_least for r in references])),
            static_min,
            max(r.static_min_executors for r in references),
            static_max,
        ),
        tuple(policies),
    )


def _mean(scores: Sequence[Score]) -> Score:
    return replace(
        scores[0],
        in_time_share=float(np.mean([s.in_time_share for s in scores])),
        latency_p99_s=float(np.mean([s.latency_p99_s for s in scores])),
        executor_seconds=float(np.mean([s.executor_seconds for s in scores])),
        reconfigurations=round(float(np.mean([s.reconfigurations for s in scores]))),
        foretold=Calibration(
            *(sum(getattr(s.foretold, one.name) for s in scores) for one in fields(Calibration))
        ),
    )


def dominated_by(score: Score, others: Iterable[Score]) -> tuple[str, ...]:
    """Who had no smaller share in time for no more executor-seconds, and one of them better."""
    return tuple(
        other.policy
        for other in others
        if other.in_time_share >= score.in_time_share
        and other.executor_seconds <= score.executor_seconds
        and (other.in_time_share, -other.executor_seconds)
        != (score.in_time_share, -score.executor_seconds)
    )
