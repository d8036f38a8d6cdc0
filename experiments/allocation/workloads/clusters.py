"""Synthetic clusters as in Madsen et al. 2017, s. 5.1 and s. 5.3.

Every node starts with the same number of key groups and a load of `MEAN_LOAD`; a key group's load
is its share give or take 5%. A fifth of the nodes are then changed, half of them by
-0.5 `varies` percent of their load and half by +0.5, spread over half of their key groups. The
paper leaves the mean load and the number of changed key groups open; these are chosen once.
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from penstock.allocation.problem import AllocationProblem, Floats, Ints
from penstock.allocation.traffic import Traffic

MEAN_LOAD = 50.0
CHANGED_NODES = 0.2
CHANGED_GROUPS = 0.5


def fluctuating(
    nodes: int, groups_per_node: int, varies: float, max_migrations: float, seed: int
) -> AllocationProblem:
    """The cluster of s.5.1."""
    rng = np.random.default_rng(seed)
    groups = nodes * groups_per_node
    home = np.repeat(np.arange(nodes), groups_per_node)
    load = MEAN_LOAD / groups_per_node * (1 + rng.uniform(-0.05, 0.05, groups))
    changed = rng.choice(nodes, size=max(2, round(CHANGED_NODES * nodes)), replace=False)
    for position, node in enumerate(changed):
        sign = -1 if position < len(changed) // 2 else 1
        load = change_node(load, home, int(node), sign * 0.5 * varies / 100, rng)
    return alike(load, home, nodes, max_migrations)


def alike(
    load: Floats, home: Ints, nodes: int, max_migrations: float = np.inf
) -> AllocationProblem:
    """Nodes of one capacity that all stay, and key groups that cost the same to move."""
    return AllocationProblem(
        load=load,
        home=home,
        capacity=np.ones(nodes),
        draining=np.zeros(nodes, dtype=bool),
        migration_cost=np.ones(len(load)),
        max_migration_cost=float(max_migrations),
    )


def change_node(
    load: Floats, home: Ints, node: int, by_share: float, rng: np.random.Generator
) -> Floats:
    """Loads with one node's changed by a share of it, on a random part of its key groups."""
    members = np.flatnonzero(home == node)
    if len(members) == 0:
        return load
    chosen = rng.choice(members, size=max(1, round(CHANGED_GROUPS * len(members))), replace=False)
    changed = load.copy()
    changed[chosen] += by_share * load[members].sum() / len(chosen)
    return np.maximum(changed, 0.0)


def drift(
    problem: AllocationProblem, percent: float, rng: np.random.Generator
) -> AllocationProblem:
    """The next period of s.5.3: a fifth of the nodes change by up to `percent` either way."""
    nodes = len(problem.capacity)
    load = problem.load
    for node in rng.choice(nodes, size=max(1, round(CHANGED_NODES * nodes)), replace=False):
        share = rng.uniform(-percent, percent) / 100
        load = change_node(load, problem.home, int(node), share, rng)
    return replace(problem, load=load)


def pipeline_traffic(groups: int, operators: int, one_to_one: float, seed: int) -> Traffic:
    """Operators in a row; a share of key groups sends all to one partner, the rest to everyone.

    Key groups belong to operators in turn over the nodes, so that partners live apart at first.
    """
    rng = np.random.default_rng(seed)
    operator = np.arange(groups) % operators
    per_operator = [rng.permutation(np.flatnonzero(operator == o)) for o in range(operators)]
    sources, targets, rates = [], [], []
    for upstream, downstream in pairwise(per_operator):
        paired = rng.random(len(upstream)) < one_to_one
        count = len(downstream)
        sources.append(upstream[paired])
        targets.append(downstream[np.flatnonzero(paired) % count])
        rates.append(np.ones(int(paired.sum())))
        spread = upstream[~paired]
        sources.append(np.repeat(spread, count))
        targets.append(np.tile(downstream, len(spread)))
        rates.append(np.full(len(spread) * count, 1.0 / count))
    return Traffic(
        np.concatenate(sources), np.concatenate(targets), np.concatenate(rates), operator
    )
