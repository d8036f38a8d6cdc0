"""Scenarios that train a policy which learns: the same load, over and over, at fixed sizes.

Kotto-Kombi 2018, ch. 7 s. 4: the knowledge base is made beforehand, on representative load. A
trained size keeps what it has from start to end, so that each is seen at every rate of the load,
and the load is drawn with another seed, so that what is learnt is not the run to come.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from penstock.control.history.store import HistoryStore
from penstock.control.records import TRAINING, RunRecord
from penstock.scaling.policies.static import Static
from penstock.sim.run import simulate
from penstock.sim.scenario import Scenario

MOST_SIZES = 12  # of one scenario; more are taken from the whole range


@dataclass(frozen=True)
class Trained:
    """One run of a scenario at a fixed size."""

    processors: int  # in all, or of each operator where they have their own
    in_time_share: float
    backlog_rows: int  # left at the end


def train(scenario: Scenario, store: HistoryStore, name: str) -> tuple[Trained, ...]:
    """Run the scenario at each size and record it, under the name of the runs that are to learn."""
    found = []
    for size in sizes_of(scenario):
        fixed = at_size(scenario, size)
        kept = store.begin(
            RunRecord(
                name, TRAINING, 0.0, fixed.period_s, fixed.max_latency_s, fixed.cluster.slots,
                edges=fixed.edges, executors_min=fixed.cluster.executors,
                executors_max=fixed.cluster.executors, share=fixed.share,
            )
        )  # fmt: skip
        result = simulate(fixed, Static(), history=kept)
        kept.end(fixed.duration_s)
        processors = size * (fixed.cluster.slots if fixed.sharing == "time" else 1)
        found.append(Trained(processors, result.in_time_share, result.held_rows))
    return tuple(found)


def sizes_of(scenario: Scenario) -> tuple[int, ...]:
    """Executors, or the degree of every operator where they have processors of their own."""
    least, most = scenario.cluster.min_executors, scenario.cluster.max_executors
    if scenario.sharing == "space":
        least, most = 1, most * scenario.cluster.slots - len(scenario.operators) + 1
    chosen = np.linspace(least, most, min(MOST_SIZES, most - least + 1))
    return tuple(sorted({round(size) for size in chosen.tolist()}))


def at_size(scenario: Scenario, size: int) -> Scenario:
    """The scenario with that many executors, or processors of each operator, and another seed."""
    executors = size
    operators = scenario.operators
    if scenario.sharing == "space":
        operators = tuple(replace(operator, processors=size) for operator in operators)
        executors = math.ceil(size * len(operators) / scenario.cluster.slots)
    cluster = replace(
        scenario.cluster, executors=executors, min_executors=executors, max_executors=executors
    )
    return replace(scenario, cluster=cluster, operators=operators, seed=scenario.seed + 1)
