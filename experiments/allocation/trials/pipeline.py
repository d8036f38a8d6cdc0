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
from penstock.allocation.problem import Ints, distance

MAX_MIGRATIONS = 20
VARIES = 20
ROUND_WORK = 3e5
MORE_ROUNDS = 20
OPTIONS = AlbicOptions(pairs_per_round=5)


@dataclass(frozen=True)
class Outcome:
    """Load distance in points, collocation in percent of traffic, migrations of the last round.

    In the paper, the most that can be collocated is the share of key groups with one partner: what
    these send counts. The rest of the traffic goes evenly to everyone, and some of it stays at home
    by chance or by gathering operators; `all_traffic` counts that as well.
    """

    load_distance: float
    collocation: float
    all_traffic: float
    migrations: float


def run(nodes: int, groups: int, operators: int, factor: int, seed: int) -> tuple[Outcome, Outcome]:
    """ALBIC after its rounds, and COLA on the last one's loads."""
    rng = np.random.default_rng(seed)
    problem = fluctuating(nodes, groups // nodes, VARIES, MAX_MIGRATIONS, seed)
    traffic = pipeline_traffic(groups, operators, factor / 100, seed)
    to_one = traffic.rate == 1.0
    pairs = int(np.count_nonzero(to_one))
    start = problem.home
    migrations = 0.0
    for _ in range(pairs // OPTIONS.pairs_per_round + MORE_ROUNDS):
        problem = drift(problem, 2.0, rng)
        found = albic(problem, traffic, OPTIONS, SearchBudget(ROUND_WORK), rng).allocation
        migrations = found.cost
        problem = replace(problem, home=found.placement)
    anew = cola(problem, traffic, rng)

    def outcome(placement: Ints, moved: float) -> Outcome:
        stays = (placement[traffic.source] == placement[traffic.target]) & to_one
        return Outcome(
            distance(problem, placement).load_distance,
            100 * float(traffic.rate[stays].sum() / traffic.rate.sum()),
            100 * traffic.collocation(placement),
            moved,
        )

    return (
        outcome(problem.home, migrations),
        outcome(anew, float(np.count_nonzero(anew != start))),
    )
