"""Algorithm 1: allocate in thought, scale, allocate again, give back what is empty."""

from dataclasses import replace

import numpy as np

from penstock.allocation.budget import SearchBudget
from penstock.allocation.framework import Cluster, NewNode, Scale, ScalingChange, adapt
from penstock.allocation.problem import AllocationProblem
from penstock.allocation.solver import Allocation, solve


def cluster(home: list[int], draining: list[bool], budget: float = 100.0) -> Cluster:
    names = tuple(f"n{index}" for index in range(len(draining)))
    return Cluster(
        names,
        AllocationProblem(
            load=np.full(len(home), 10.0),
            home=np.array(home),
            capacity=np.ones(len(draining)),
            draining=np.array(draining),
            migration_cost=np.ones(len(home)),
            max_migration_cost=budget,
        ),
    )


def allocate(problem: AllocationProblem) -> Allocation:
    return solve(problem, SearchBudget(2e5), np.random.default_rng(0))


def scale_above(limit: float, seen: list[float]) -> Scale:
    def scale(now: Cluster, plan: Allocation) -> ScalingChange:
        highest = float(now.problem.node_loads(plan.placement).max())
        seen.append(highest)
        return ScalingChange(add=(NewNode("new"),)) if highest > limit else ScalingChange()

    return scale


def test_balance_alone_avoids_scaling_out() -> None:
    # n0 is at 80, but balanced both are at 40: the scaling policy sees the plan, not the present.
    seen: list[float] = []
    found = adapt(cluster([0] * 8, [False, False]), allocate, scale_above(50, seen))
    assert seen == [40.0]
    assert not found.change
    assert found.cluster.nodes == ("n0", "n1")
    assert np.bincount(found.plan.placement).tolist() == [4, 4]


def test_new_nodes_are_planned_for_in_the_same_round() -> None:
    found = adapt(cluster([0] * 6 + [1] * 6, [False, False]), allocate, scale_above(50, []))
    assert found.cluster.nodes == ("n0", "n1", "new")
    assert np.bincount(found.plan.placement).tolist() == [4, 4, 4]


def test_marked_nodes_are_emptied_and_then_given_back() -> None:
    def drain_last(now: Cluster, plan: Allocation) -> ScalingChange:
        return ScalingChange(drain=("n2",)) if not now.problem.draining.any() else ScalingChange()

    first = adapt(cluster([0, 0, 1, 1, 2, 2], [False] * 3), allocate, drain_last)
    assert first.terminate == ()
    assert not np.any(first.plan.placement == 2)
    carried_out = replace(first.cluster.problem, home=first.plan.placement)
    second = adapt(
        Cluster(first.cluster.nodes, carried_out), allocate, lambda now, plan: ScalingChange()
    )
    assert second.terminate == ("n2",)
    assert second.cluster.nodes == ("n0", "n1")
    assert second.plan.cost == 0


def test_a_full_draining_node_is_not_given_back() -> None:
    found = adapt(
        cluster([0, 1, 1], [False, True], budget=1), allocate, lambda now, plan: ScalingChange()
    )
    assert found.terminate == ()
    assert np.count_nonzero(found.plan.placement == 1) == 1
