"""Limits of further resources and draining, judged by counting every placement."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from penstock.allocation.advice import advise
from penstock.allocation.bound import load_distance_bound
from penstock.allocation.budget import SearchBudget
from penstock.allocation.local_search import LocalSearch
from penstock.allocation.problem import (
    NOWHERE,
    AllocationProblem,
    Ints,
    Resource,
    distance,
    rank,
)
from penstock.allocation.solver import solve

WORK = 4e5


def crowded(seed: int, nodes: int = 3, groups: int = 7) -> AllocationProblem:
    """Tight limits, often with a node to drain, key groups without a home, or a small budget."""
    rng = np.random.default_rng(seed)
    home = rng.integers(nodes, size=groups)
    if rng.random() < 0.3:
        home[rng.random(groups) < 0.25] = NOWHERE
    draining = np.zeros(nodes, dtype=bool)
    draining[0] = rng.random() < 0.6
    resources = []
    for number in range(int(rng.integers(0, 3))):
        use = rng.integers(1, 10, groups).astype(float)
        room = use.sum() / np.count_nonzero(~draining) * rng.uniform(1.0, 1.4)
        limit = np.maximum(1.0, np.ceil(room) + rng.integers(-3, 4, nodes))
        resources.append(Resource(f"r{number}", use, limit))
    by_count = rng.random() < 0.5
    return AllocationProblem(
        load=rng.integers(1, 20, groups).astype(float),
        home=home,
        capacity=rng.choice([1.0, 2.0], nodes),
        draining=draining,
        migration_cost=np.ones(groups) if by_count else rng.integers(1, 6, groups).astype(float),
        max_migration_cost=float(rng.choice([0, 1, 2, 3, 5, 1e9])),
        resources=tuple(resources),
    )


def placements(problem: AllocationProblem) -> Iterator[Ints]:
    """Every placement within the budget; what is on a draining node may stay there."""
    opened = np.flatnonzero(problem.open).tolist()
    choices = [
        opened if home == NOWHERE else sorted({*opened, home}) for home in problem.home.tolist()
    ]
    for placement in map(np.array, itertools.product(*choices)):
        if problem.cost(placement) <= problem.max_migration_cost + 1e-9:
            yield placement


@pytest.mark.parametrize("seed", [*range(24), 76, 78, 93, 137, 198])
def test_no_placement_ranks_before_the_one_found(seed: int) -> None:
    problem = crowded(seed)
    every = list(placements(problem))
    best = min(rank(problem, placement) for placement in every)
    found = solve(problem, SearchBudget(WORK), np.random.default_rng(0))
    reached = rank(problem, found.placement)
    assert reached[:2] == best[:2]  # limits, draining
    if problem.must_drain or not problem.draining.any():  # else one may be forced off
        assert reached[2] == pytest.approx(best[2], abs=2e-3)
    limits = reached[0] + 1e-9
    least = min(distance(problem, p).load_distance for p in every if problem.overuse(p) <= limits)
    assert found.bound <= least + 1e-6
    assert load_distance_bound(problem) <= least + 1e-6


def test_limits_that_a_swap_can_keep_are_kept() -> None:
    sizes = {"a": 9, "b": 7, "c": 1, "d": 1}
    document = {
        "policy": "milp",
        "nodes": [{"name": name, "resources": {"memory": 10}} for name in ("one", "two")],
        "key_groups": [
            {"name": name, "load": 10, "node": "one" if size > 1 else "two",
             "resources": {"memory": size}}
            for name, size in sizes.items()
        ],
        "max_migrations": 5,
    }  # fmt: skip
    answer = advise(document)
    assert "infeasible" not in answer
    assert len(answer["migrations"]) == 2
    assert answer["load_distance"] == 0


def test_the_search_keeps_limits_before_it_looks_at_the_distance() -> None:
    """As above, without the exact program, which only small problems are given to."""
    problem = AllocationProblem(
        load=np.full(40, 10.0),
        home=np.repeat([0, 1], 20),
        capacity=np.ones(2),
        draining=np.zeros(2, dtype=bool),
        migration_cost=np.ones(40),
        max_migration_cost=10.0,
        resources=(
            Resource("memory", np.repeat([4.0, 1.0], 20), np.array([70.0, 70.0])),
        ),
    )  # fmt: skip
    search = LocalSearch(problem, problem.home, SearchBudget(WORK), np.random.default_rng(0))
    search.narrow_distance(load_distance_bound(problem))
    assert problem.overuse(search.best) == 0


def test_draining_breaks_no_limit_that_is_kept() -> None:
    problem = AllocationProblem(
        load=np.array([5.0, 5.0, 5.0, 5.0]),
        home=np.array([0, 0, 1, 1]),
        capacity=np.ones(2),
        draining=np.array([True, False]),
        migration_cost=np.ones(4),
        resources=(Resource("memory", np.array([3.0, 2.0, 4.0, 4.0]), np.array([10.0, 10.0])),),
    )
    found = solve(problem, SearchBudget(WORK), np.random.default_rng(0))
    assert problem.overuse(found.placement) == 0
    assert found.placement.tolist() == [0, 1, 1, 1]


def test_a_node_without_a_limit_beside_one_with_is_no_matter() -> None:
    """Executors whose memory is not known beside others whose is."""
    problem = AllocationProblem(
        load=np.arange(1.0, 41.0),
        home=np.zeros(40, dtype=np.int64),
        capacity=np.ones(3),
        draining=np.zeros(3, dtype=bool),
        migration_cost=np.ones(40),
        resources=(Resource("memory", np.ones(40), np.array([np.inf, 12.0, 12.0])),),
    )
    search = LocalSearch(problem, problem.home, SearchBudget(WORK), np.random.default_rng(0))
    search.narrow_distance(load_distance_bound(problem))
    assert problem.overuse(search.best) == 0
    assert distance(problem, search.best).load_distance < 5
