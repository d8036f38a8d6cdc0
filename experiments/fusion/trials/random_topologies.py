"""Every fusion algorithm on the random topologies of Guo and Zhou 2017, s. 6.2, by seed."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

from experiments.fusion.trials.placement import place_instances
from experiments.fusion.workloads.random_topologies import (
    group_shares,
    measured_graph,
    random_topology,
)
from experiments.statistics import Spread, spread
from penstock.fusion.attribute_choice import choose_attributes
from penstock.fusion.costs import Costs, FusionLimits
from penstock.fusion.graph import OperatorGraph
from penstock.fusion.planner import Algorithm, decide_fusion

DEGREES = (3, 5, 10)  # streams per operator
INTERVALS_MIN = (1, 2, 5, 10)  # 1/f
INTERVAL_DEGREE = 5  # the degree at which 1/f is varied
PLANNERS: tuple[Algorithm, ...] = ("greedy", "mwsc", "mwsc-literal")
DRIFTS = (0.05, 0.2, 1.0)  # the first is the one chosen; the others show what it decides
BASELINE = "baseline"
BOUND = "bound"  # what no fused plan can exceed


@dataclass(frozen=True)
class Setting:
    """How large an experiment is; the paper gives the number of operators only."""

    operators: int = 100
    minutes: int = 60
    groups: int = 120
    nodes: int = 30
    max_pool: int = 3_000


QUICK = Setting(operators=24, minutes=10, groups=32, nodes=8, max_pool=100)


@dataclass(frozen=True)
class Outcome:
    """What one algorithm did in one run."""

    algorithm: str
    degree: int
    skewed: bool
    interval_min: int
    saved: float  # share of all rows processed that are not sent between components or nodes
    moved: float  # state moved in a minute, as a share of all state


@dataclass(frozen=True)
class DriftOutcome:
    """State the greedy plan moves in a minute, when key groups change their ranks this fast."""

    drift: float
    interval_min: int
    moved: float


def _outcomes_of(seed: int, setting: Setting) -> Iterable[Outcome]:
    """All degrees and both streams; at one degree, all adaptation intervals."""
    for degree in DEGREES:
        topology = random_topology(np.random.default_rng([seed, degree]), setting.operators, degree)
        intervals = INTERVALS_MIN if degree == INTERVAL_DEGREE else INTERVALS_MIN[:1]
        for skewed in (False, True):
            rng = np.random.default_rng([seed, degree, 1])
            shares = group_shares(rng, setting.minutes, setting.groups, skewed)
            for interval_min in intervals:
                # The same generator for each interval: the same minutes, in other windows.
                counts = np.random.default_rng([seed, degree, 2])
                graph = measured_graph(counts, topology, shares, interval_min)
                for algorithm, saved, moved in _compare(graph, setting):
                    yield Outcome(algorithm, degree, skewed, interval_min, saved, moved)


def _copied_outcomes_of(seed: int, setting: Setting) -> Iterable[Outcome]:
    """All degrees where every downstream gets every row, on the even stream."""
    for degree in DEGREES:
        drawn = np.random.default_rng([seed, degree])
        topology = random_topology(drawn, setting.operators, degree, copied=True)
        rng = np.random.default_rng([seed, degree, 1])
        shares = group_shares(rng, setting.minutes, setting.groups, False)
        graph = measured_graph(np.random.default_rng([seed, degree, 2]), topology, shares, 1)
        for algorithm, saved, moved in _compare(graph, setting):
            yield Outcome(algorithm, degree, False, 1, saved, moved)


def _compare(graph: OperatorGraph, setting: Setting) -> Iterable[tuple[str, float, float]]:
    """Every algorithm on one measured graph, with the same costs for all."""
    costs = Costs(graph)
    processed = float(graph.input_rows.sum())
    all_state = float(graph.state_rows.sum()) / graph.state_rows.shape[1]

    def shares(algorithm: str, sent: float, moved: float) -> tuple[str, float, float]:
        return algorithm, (graph.total_rows - sent) / processed, moved / setting.minutes / all_state

    yield BOUND, choose_attributes(graph).most_saved_rows / processed, 0.0
    placed = place_instances(costs, setting.nodes)
    yield shares(BASELINE, placed.communication_cost, placed.adaptation_cost)
    for algorithm in PLANNERS:
        plan = decide_fusion(costs, algorithm, FusionLimits(max_pool=setting.max_pool)).plan
        yield shares(algorithm, plan.communication_cost, plan.adaptation_cost)


def _drift_outcomes_of(seed: int, setting: Setting) -> Iterable[DriftOutcome]:
    """The greedy plan on the skewed stream, by drift and adaptation interval."""
    degree = INTERVAL_DEGREE
    topology = random_topology(np.random.default_rng([seed, degree]), setting.operators, degree)
    for drift, interval_min in product(DRIFTS, INTERVALS_MIN):
        rng = np.random.default_rng([seed, degree, 1])
        shares = group_shares(rng, setting.minutes, setting.groups, True, drift)
        counts = np.random.default_rng([seed, degree, 2])
        graph = measured_graph(counts, topology, shares, interval_min)
        moved = decide_fusion(Costs(graph), "greedy").plan.adaptation_cost
        all_state = float(graph.state_rows.sum()) / graph.state_rows.shape[1]
        yield DriftOutcome(drift, interval_min, moved / setting.minutes / all_state)


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of all seeds, asked for by what they are of."""

    rows: tuple[Outcome, ...]
    drifts: tuple[DriftOutcome, ...]
    copied: tuple[Outcome, ...]  # where every downstream gets every row

    def moved_at_drift(self, drift: float, interval_min: int) -> Spread:
        """State the greedy plan moves in a minute."""
        wanted = (drift, interval_min)
        return spread(o.moved for o in self.drifts if (o.drift, o.interval_min) == wanted)

    def moving_share(self, algorithm: str, skewed: bool) -> float:
        """The share of runs, adapting every minute, in which any state moved at all."""
        runs = [o for d in DEGREES for o in self._of(algorithm, d, skewed, 1)]
        return sum(o.moved > 0 for o in runs) / len(runs)

    def saved(self, algorithm: str, degree: int, skewed: bool) -> Spread:
        """Communication saved when adapting every minute."""
        return spread(o.saved for o in self._of(algorithm, degree, skewed, 1))

    def saved_copied(self, algorithm: str, degree: int) -> Spread:
        """Communication saved where every downstream gets every row."""
        wanted = (algorithm, degree)
        return spread(o.saved for o in self.copied if (o.algorithm, o.degree) == wanted)

    def moved(self, algorithm: str, degree: int, skewed: bool, interval_min: int = 1) -> Spread:
        """State moved in a minute."""
        return spread(o.moved for o in self._of(algorithm, degree, skewed, interval_min))

    def _of(
        self, algorithm: str, degree: int, skewed: bool, interval_min: int
    ) -> Iterable[Outcome]:
        wanted = (algorithm, degree, skewed, interval_min)
        return (o for o in self.rows if (o.algorithm, o.degree, o.skewed, o.interval_min) == wanted)


@cache
def outcomes(seeds: tuple[int, ...], quick: bool) -> Outcomes:
    """All runs of all seeds; the same for F1 and F2."""
    setting = QUICK if quick else Setting()
    return Outcomes(
        tuple(outcome for seed in seeds for outcome in _outcomes_of(seed, setting)),
        tuple(outcome for seed in seeds for outcome in _drift_outcomes_of(seed, setting)),
        tuple(outcome for seed in seeds for outcome in _copied_outcomes_of(seed, setting)),
    )
