"""ALBIC against COLA on a pipeline whose obtainable collocation is set.

Madsen et al. 2017, s. 5.3.

ALBIC starts from a placement that ignores traffic and adapts it round by round while a fifth of the
nodes change by up to 2% each round; COLA places everything anew for the last round's loads. The
paper does not say how many rounds it ran; here a round may join five pairs, a quarter of the
migrations allowed, and there are as many rounds as joining every pair takes, and twenty more.
"""

from dataclasses import dataclass, replace

import numpy as np

from experiments.allocation.workloads.clusters import drift, fluctuating, pipeline_traffic
from penstock.allocation.albic import AlbicOptions, albic
from penstock.allocation.budget import SearchBudget
from penstock.allocation.cola import cola
from penstock.allocation.problem import distance

MAX_MIGRATIONS = 20
VARIES = 20
ROUND_WORK = 3e5
MORE_ROUNDS = 20
OPTIONS = AlbicOptions(pairs_per_round=5)


@dataclass(frozen=True)
class Outcome:
    """Load distance in points, collocation in percent of traffic, migrations of the last round."""

    load_distance: float
    collocation: float
    migrations: float


def run(nodes: int, groups: int, operators: int, factor: int, seed: int) -> tuple[Outcome, Outcome]:
    """ALBIC after its rounds, and COLA on the last one's loads."""
    rng = np.random.default_rng(seed)
    problem = fluctuating(nodes, groups // nodes, VARIES, MAX_MIGRATIONS, seed)
    traffic = pipeline_traffic(groups, operators, factor / 100, seed)
    pairs = int(np.count_nonzero(traffic.rate == 1.0))
    start = problem.home
    migrations = 0.0
    for _ in range(pairs // OPTIONS.pairs_per_round + MORE_ROUNDS):
        problem = drift(problem, 2.0, rng)
        found = albic(problem, traffic, OPTIONS, SearchBudget(ROUND_WORK), rng).allocation
        migrations = found.cost
        problem = replace(problem, home=found.placement)
    anew = cola(problem, traffic, rng)
    return (
        Outcome(
            distance(problem, problem.home).load_distance,
            100 * traffic.collocation(problem.home),
            migrations,
        ),
        Outcome(
            distance(problem, anew).load_distance,
            100 * traffic.collocation(anew),
            float(np.count_nonzero(anew != start)),
        ),
    )
