"""A scenario under sizes that are known beforehand, without loop and policy."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from penstock.control.actions import SetExecutors
from penstock.sim.scenario import Scenario
from penstock.sim.tally import Results
from penstock.sim.world import SimulatedWorld


@dataclass(frozen=True)
class Followed:
    """What a scenario gave under a plan."""

    results: Results
    paid_executor_seconds: float
    reconfigurations: int


def follow(scenario: Scenario, sizes: Sequence[int]) -> Followed:
    """Have so many executors serve in each period; each is asked for its start-up time earlier.

    The first size is there from the start. Executors asked for are those of the greatest size until
    one asked for now would serve: none is let go that is needed again by then.
    """
    cluster = scenario.cluster
    ahead = periods_to_start(scenario)
    world = SimulatedWorld(
        replace(scenario, cluster=replace(cluster, executors=sizes[0])), keep_results=True
    )
    changes = 0
    for number in range(1, len(sizes)):
        if not world.wait_s(scenario.period_s):
            break
        wanted = max(sizes[number : number + ahead + 1])
        if wanted != world.executors():
            world.act(SetExecutors(wanted))
            changes += 1
    while world.wait_s(scenario.period_s):
        pass
    world.observe()
    paid = world.cluster.paid_seconds(scenario.duration_s)
    return Followed(Results.joined(world.results), paid, changes)


def periods_to_start(scenario: Scenario) -> int:
    """Periods from the one in which an executor is asked for to the first in which it serves."""
    return math.ceil(scenario.cluster.startup_s / scenario.period_s - 1e-9)


def periods(scenario: Scenario) -> int:
    """Periods of the loop in a scenario; the last one may be shorter."""
    return math.ceil(scenario.duration_s / scenario.period_s - 1e-9)
