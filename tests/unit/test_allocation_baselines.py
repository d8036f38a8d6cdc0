"""Flux and PoTC do what their descriptions say."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.allocation.workloads.clusters import fluctuating
from penstock.allocation.budget import SearchBudget
from penstock.allocation.flux import flux
from penstock.allocation.framework import Cluster
from penstock.allocation.policies import AllocationContext, decide
from penstock.allocation.potc import potc
from penstock.allocation.problem import AllocationProblem, Ints, distance
from penstock.allocation.traffic import no_traffic


def cluster(load: list[float], home: list[int], nodes: int, budget: float) -> AllocationProblem:
    return AllocationProblem(
        load=np.array(load),
        home=np.array(home),
        capacity=np.ones(nodes),
        draining=np.zeros(nodes, dtype=bool),
        migration_cost=np.ones(len(load)),
        max_migration_cost=budget,
    )


def test_flux_moves_the_biggest_suitable_from_first_to_last() -> None:
    # Moving 12 would only exchange the two nodes' loads of 18 and 6; 5 is the next biggest.
    problem = cluster([12, 5, 1, 9, 9, 6], [0, 0, 0, 1, 2, 3], nodes=4, budget=1)
    assert flux(problem).tolist() == [0, 3, 0, 1, 2, 3]


def test_flux_keeps_to_its_budget_and_stops_when_nothing_helps() -> None:
    problem = cluster([1.0] * 9, [0] * 9, nodes=3, budget=100)
    placement = flux(problem)
    assert np.bincount(placement).tolist() == [3, 3, 3]
    assert problem.cost(flux(replace(problem, max_migration_cost=2.0))) == 2


def test_flux_empties_draining_nodes_first() -> None:
    problem = cluster([5, 5, 5, 1], [0, 0, 1, 2], nodes=3, budget=1)
    problem = replace(problem, draining=np.array([False, False, True]))
    assert flux(problem)[3] != 2


def test_potc_splits_what_one_node_could_not_balance() -> None:
    problem = cluster([60.0, 1, 1, 1], [0, 0, 0, 0], nodes=2, budget=0)
    choices = potc(problem, np.random.default_rng(3))
    loads = choices.node_loads(problem.load, problem.capacity)
    assert loads.sum() == pytest.approx(63)
    if choices.first[0] != choices.second[0]:
        assert abs(loads[0] - loads[1]) < 10


def test_potc_does_not_see_the_load_of_merging() -> None:
    rng = np.random.default_rng(0)
    problem = cluster(rng.uniform(1, 9, 60).tolist(), [0] * 60, nodes=6, budget=0)
    choices = potc(problem, rng)
    plain = choices.node_loads(problem.load, problem.capacity)
    merging = rng.uniform(0, 2, 60)
    merged = choices.node_loads(problem.load, problem.capacity, merging)
    assert merged.sum() > plain.sum()
    assert merged.std() > plain.std()


def test_distance_counts_overloaded_draining_nodes() -> None:
    problem = replace(
        cluster([9, 3, 3], [2, 0, 1], nodes=3, budget=0), draining=np.array([False, False, True])
    )
    found = distance(problem, problem.home)
    assert found.upper == pytest.approx(9 - 7.5)
    assert found.lower == pytest.approx(7.5 - 3)
    assert found.draining_load == 9


def test_potc_moves_nothing_once_its_choices_are_made() -> None:
    rng = np.random.default_rng(3)
    problem = fluctuating(8, 20, varies=20, max_migrations=10, seed=1)
    names = tuple(f"node {n}" for n in range(8))

    def decided(now: AllocationProblem, nodes: tuple[str, ...]) -> Ints:
        groups = [str(group) for group in range(len(now.load))]
        context = AllocationContext(Cluster(nodes, now), groups, no_traffic(len(groups)))
        return decide("potc", context, SearchBudget(1.0), rng).plan.placement

    settled = replace(problem, home=decided(problem, names))
    assert np.array_equal(decided(settled, names), settled.home)
    wavering = replace(settled, load=settled.load * rng.uniform(0.95, 1.05, len(settled.load)))
    moved = np.count_nonzero(decided(wavering, names) != settled.home)
    assert moved < 0.1 * len(settled.load)
    # A node that goes takes only the choices that were on it.
    gone = replace(settled, draining=np.arange(8) == 5)
    stayed = settled.home[settled.home != 5] == decided(gone, names)[settled.home != 5]
    assert stayed.mean() > 0.6
