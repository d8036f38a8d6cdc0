"""Key groups that talk come together: METIS parts, ALBIC's steps, COLA."""

from dataclasses import replace

import numpy as np
import pytest

from penstock.allocation.albic import AlbicAnswer, AlbicOptions, albic, scoring_pairs
from penstock.allocation.budget import SearchBudget
from penstock.allocation.cola import cola
from penstock.allocation.framework import Cluster
from penstock.allocation.partition import split
from penstock.allocation.policies import AllocationContext, decide
from penstock.allocation.problem import AllocationProblem, distance
from penstock.allocation.traffic import Traffic, no_traffic


def pairs_apart(pairs: int, nodes: int, budget: float = 4.0) -> tuple[AllocationProblem, Traffic]:
    """Two operators; key group i sends all to i + pairs, which lives on the next node."""
    first = np.arange(pairs) % nodes
    problem = AllocationProblem(
        load=np.full(2 * pairs, 100.0 / (2 * pairs)),
        home=np.concatenate([first, (first + 1) % nodes]),
        capacity=np.ones(nodes),
        draining=np.zeros(nodes, dtype=bool),
        migration_cost=np.ones(2 * pairs),
        max_migration_cost=budget,
    )
    rate = np.linspace(1, 2, pairs)
    operator = np.repeat([0, 1], pairs)
    return problem, Traffic(np.arange(pairs), np.arange(pairs) + pairs, rate, operator)


def budget() -> SearchBudget:
    return SearchBudget(1e6)


def test_parts_are_balanced_and_cut_little() -> None:
    ring = np.arange(12)
    traffic = Traffic(ring, (ring + 1) % 12, np.ones(12), np.zeros(12, dtype=np.int64))
    parts = split(ring, np.ones(12), traffic, 3, seed=1)
    assert sorted(np.concatenate(parts).tolist()) == ring.tolist()
    assert {len(part) for part in parts} == {4}
    label = np.empty(12, dtype=np.int64)
    for number, part in enumerate(parts):
        label[part] = number
    assert np.count_nonzero(label[traffic.source] != label[traffic.target]) == 3


@pytest.mark.parametrize("members", [2, 3, 7])
def test_members_without_traffic_or_weight_are_still_split(members: int) -> None:
    parts = split(np.arange(members), np.zeros(members), no_traffic(members), 2, seed=0)
    assert len(parts) == 2
    assert sum(map(len, parts)) == members


def test_a_pair_scores_by_its_share_of_what_its_sender_sends() -> None:
    # Key group 0 sends 9 + 1 to operator 1 (two key groups): average 5, threshold 7.5.
    operator = np.array([0, 1, 1])
    traffic = Traffic(np.array([0, 0]), np.array([1, 2]), np.array([9.0, 1.0]), operator)
    assert scoring_pairs(traffic, 1.5).tolist() == [0]
    assert scoring_pairs(traffic, 1.9).tolist() == []


def test_each_round_joins_the_pair_with_most_traffic() -> None:
    problem, traffic = pairs_apart(pairs=8, nodes=4)
    answer = albic(problem, traffic, AlbicOptions(), budget(), np.random.default_rng(0))
    assert answer.joined == ((7, 15),)
    assert answer.allocation.placement[7] == answer.allocation.placement[15]


def test_rounds_bring_all_together_and_keep_them_there() -> None:
    problem, traffic = pairs_apart(pairs=12, nodes=4)
    seen = [traffic.collocation(problem.home)]
    for round_number in range(24):
        answer = albic(
            problem, traffic, AlbicOptions(), budget(), np.random.default_rng(round_number)
        )
        assert answer.allocation.cost <= problem.max_migration_cost
        problem = replace(problem, home=answer.allocation.placement)
        seen.append(traffic.collocation(problem.home))
    assert seen[0] == 0.0
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(1.0)
    assert distance(problem, problem.home).load_distance <= AlbicOptions().max_load_distance


def test_a_joined_pair_goes_to_the_node_of_the_one_already_in_a_set() -> None:
    # 0 -> 2 live together on node 0 (a set); 1 -> 2 is apart: case 2 brings 1 to node 0.
    operator = np.array([0, 0, 1, 1, 1])
    traffic = Traffic(np.array([0, 1]), np.array([2, 2]), np.array([5.0, 5.0]), operator)
    problem = AllocationProblem(
        load=np.array([2.0, 2.0, 2.0, 1.0, 1.0]),
        home=np.array([0, 1, 0, 1, 1]),
        capacity=np.ones(2),
        draining=np.zeros(2, dtype=bool),
        migration_cost=np.ones(5),
        max_migration_cost=2.0,
    )
    answer = albic(problem, traffic, AlbicOptions(), budget(), np.random.default_rng(0))
    assert answer.allocation.placement[[0, 1, 2]].tolist() == [0, 0, 0]


def test_collocation_gives_way_when_the_load_distance_would_be_too_great() -> None:
    # One set of all key groups on one node: only small partitions let the load spread.
    pairs = 10
    problem, _ = pairs_apart(pairs, nodes=2, budget=20.0)
    star = Traffic(
        np.repeat([0], 2 * pairs - 1), np.arange(1, 2 * pairs), np.ones(2 * pairs - 1),
        np.array([0] + [1] * (2 * pairs - 1)),
    )  # fmt: skip
    problem = replace(problem, home=np.zeros(2 * pairs, dtype=np.int64))
    options = AlbicOptions(max_load_distance=5.0, score_factor=0.5, max_partition_load=100.0,
                           partition_load_step=30.0)  # fmt: skip
    answer = albic(problem, star, options, budget(), np.random.default_rng(0))
    assert answer.allocation.distance.load_distance <= 5.0
    assert answer.max_partition_load < 100.0


def test_no_traffic_is_plain_balancing() -> None:
    problem, _ = pairs_apart(pairs=8, nodes=4)
    problem = replace(problem, home=np.zeros(16, dtype=np.int64), max_migration_cost=12.0)
    answer = albic(problem, no_traffic(16), AlbicOptions(), budget(), np.random.default_rng(0))
    assert answer.joined == ()
    assert answer.allocation.distance.load_distance == pytest.approx(0.0, abs=1e-9)


def test_cola_collocates_at_once_and_moves_much() -> None:
    problem, traffic = pairs_apart(pairs=12, nodes=4)
    placement = cola(problem, traffic, np.random.default_rng(0), max_load_distance=10.0)
    assert distance(problem, placement).load_distance <= 10.0
    assert traffic.collocation(placement) > 0.9
    assert problem.cost(placement) > problem.max_migration_cost


def test_cola_cuts_until_nothing_is_left_to_cut() -> None:
    problem, traffic = pairs_apart(pairs=3, nodes=2)
    problem = replace(problem, load=np.array([90.0, 1, 1, 1, 1, 1]))
    placement = cola(problem, traffic, np.random.default_rng(0), max_load_distance=0.0)
    assert sorted(set(placement.tolist())) == [0, 1]


def on_nodes(
    loads: list[float], home: list[int], draining: list[bool], budget: float, capacity: float = 1.0
) -> AllocationProblem:
    return AllocationProblem(
        load=np.array(loads), home=np.array(home), capacity=np.full(len(draining), capacity),
        draining=np.array(draining), migration_cost=np.ones(len(loads)),
        max_migration_cost=budget,
    )  # fmt: skip


def one_to_one(pairs: list[tuple[int, int]], groups: int) -> Traffic:
    operator = np.zeros(groups, dtype=np.int64)
    operator[[target for _, target in pairs]] = 1
    ends = np.array(pairs, dtype=np.int64)
    return Traffic(ends[:, 0], ends[:, 1], np.arange(len(pairs), 0, -1.0), operator)


def answered(
    problem: AllocationProblem, traffic: Traffic, options: AlbicOptions | None = None
) -> AlbicAnswer:
    return albic(problem, traffic, options or AlbicOptions(), budget(), np.random.default_rng(0))


def test_a_pair_on_a_draining_node_leaves_it_together() -> None:
    # Two pairs are to leave node 0 and the budget pays for one and a half of them.
    traffic = one_to_one([(0, 2), (1, 3), (4, 5)], 6)
    problem = on_nodes([5.0, 5, 4, 4, 9, 9], [0, 0, 0, 0, 1, 2], [True, False, False], 3.0)
    placement = answered(problem, traffic).allocation.placement
    assert problem.cost(placement) >= 2
    assert placement[0] == placement[2]
    assert placement[1] == placement[3]
    assert (placement[[0, 1]] != 0).any()


def test_draining_comes_before_joining() -> None:
    # To join the first pair would cost the only move.
    traffic = one_to_one([(1, 2), (0, 3)], 4)
    problem = on_nodes([5.0, 5, 5, 5], [0, 1, 2, 1], [True, False, False], 1.0)
    assert len(scoring_pairs(traffic, 1.5)) == 2
    answer = answered(problem, traffic)
    assert answer.joined == ((0, 3),)
    assert answer.allocation.placement[0] == 1


def test_a_pair_with_one_end_on_a_draining_node_is_joined_on_the_other() -> None:
    # The draining node is the lighter one, where a pair would be joined if it stayed.
    traffic = one_to_one([(0, 1), (2, 3)], 4)
    problem = on_nodes([2.0, 3, 6, 5], [0, 1, 1, 2], [True, False, False], 1.0)
    answer = answered(problem, traffic)
    assert answer.joined == ((0, 1),)
    assert answer.allocation.placement.tolist() == [1, 1, 1, 2]


@pytest.mark.parametrize("seed", range(30))
def test_draining_that_the_budget_pays_for_is_done_whatever_talks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups, nodes = 8, 3
    pairs = [(g, g + 4) for g in range(4)]
    problem = on_nodes(
        rng.uniform(1, 10, groups).tolist(), rng.integers(nodes, size=groups).tolist(),
        [True, False, False], float(rng.integers(1, 9)),
    )  # fmt: skip
    decision = decide(
        "albic",
        AllocationContext(
            Cluster(("a", "b", "c"), problem), [str(g) for g in range(groups)],
            one_to_one(pairs, groups),
        ),
        budget(), rng,
    )  # fmt: skip
    placement = decision.plan.placement
    left = np.count_nonzero(placement == 0)
    assert problem.cost(placement) <= problem.max_migration_cost
    if problem.must_drain:
        assert left == 0
    else:
        assert left < np.count_nonzero(problem.home == 0)
        assert "the budget is" in (decision.infeasible or "")


@pytest.mark.parametrize("capacity", [1.0, 4.0])
def test_a_larger_node_holds_larger_partitions(capacity: float) -> None:
    # The same shares of a node: three pairs of 20 points on each of two nodes.
    pairs = [(g, g + 6) for g in range(6)]
    problem = on_nodes(
        [10.0 * capacity] * 12, [g % 2 for g in range(6)] * 2, [False, False], 6.0, capacity
    )
    traffic = one_to_one(pairs, 12)
    assert traffic.collocation(problem.home) == 1.0
    skewed = replace(problem, home=np.where(np.arange(12) % 6 < 4, 0, 1))
    placement = answered(skewed, traffic).allocation.placement
    assert traffic.collocation(placement) == 1.0
    assert distance(skewed, placement).load_distance == 0


def test_every_pair_can_be_joined_however_few_key_groups_there_are() -> None:
    # Eight key groups on four nodes: a pair is half of what a node carries.
    traffic = one_to_one([(g, g + 4) for g in range(4)], 8)
    problem = on_nodes([30.0] * 8, [0, 1, 2, 3, 1, 2, 3, 0], [False] * 4, 4.0)
    for _ in range(8):
        problem = replace(problem, home=answered(problem, traffic).allocation.placement)
    assert traffic.collocation(problem.home) == 1.0
    assert distance(problem, problem.home).load_distance == 0


def test_fewer_pairs_are_joined_before_partitions_are_made_smaller() -> None:
    # Both would be joined on node 0, which is more than it should carry; one of them is not.
    traffic = one_to_one([(0, 2), (1, 3)], 5)
    problem = on_nodes([10.0, 10, 10, 10, 5], [0, 0, 1, 1, 1], [False] * 2, 2.0)
    options = AlbicOptions(pairs_per_round=2)
    few = answered(problem, traffic, options)
    assert few.joined == ((0, 2),)
    assert few.max_partition_load == options.max_partition_load
    stubborn = answered(problem, traffic, replace(options, fewer_pairs=False))
    assert stubborn.joined == ()
