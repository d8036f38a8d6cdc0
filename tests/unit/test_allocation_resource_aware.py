"""Assignment by reservations: as good as looking at every placement, in a document and in a run."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from penstock.allocation.advice import SCHEMA, advise
from penstock.allocation.assignment import OBJECTIVES, Assignment, Objective, Rank, with_cpu
from penstock.allocation.budget import SearchBudget
from penstock.allocation.problem import NOWHERE, AllocationProblem, Ints, Resource
from penstock.allocation.resource_aware import resource_aware
from penstock.allocation.traffic import Traffic
from penstock.config import Settings
from penstock.control.from_settings import allocating_of
from penstock.documents import check_document
from penstock.errors import InvalidInput
from penstock.model.observation import (
    BatchObservation,
    ComponentObservation,
    GroupTraffic,
    KeyGroups,
    NodeObservation,
    Observation,
)
from penstock.model.topology import Topology

FULL = 100.0


def chain(tasks: int) -> Traffic:
    steps = np.arange(tasks - 1)
    return Traffic(steps, steps + 1, np.ones(tasks - 1), np.arange(tasks))


def problem(cpu: list[float], memory: list[float], nodes: int, room: float) -> AllocationProblem:
    return with_cpu(
        AllocationProblem(
            load=np.array(cpu),
            home=np.full(len(cpu), NOWHERE),
            capacity=np.ones(nodes),
            draining=np.zeros(nodes, dtype=bool),
            migration_cost=np.ones(len(cpu)),
            resources=(Resource("memory", np.array(memory), np.full(nodes, room)),),
        ),
        FULL,
    )


def answered(assignment: Assignment, seed: int = 0) -> Ints:
    rng = np.random.default_rng(seed)
    return resource_aware(assignment, SearchBudget.of_time(1.0), rng)


def best_of_all(assignment: Assignment) -> Rank:
    given = assignment.problem
    nodes = np.flatnonzero(given.open)
    every = (np.array(one) for one in itertools.product(nodes, repeat=len(given.load)))
    affordable = (one for one in every if given.cost(one) <= given.max_migration_cost + 1e-9)
    return min(tuple(round(v, 9) for v in assignment.rank(one)) for one in affordable)


def any_assignment(rng: np.random.Generator, objective: Objective) -> Assignment:
    groups, nodes = 6, 3
    given = problem(
        rng.uniform(5, 45, groups).tolist(), rng.uniform(1, 4, groups).tolist(), nodes, 8.0
    )
    given = replace(given, capacity=rng.choice([1.0, 2.0], nodes))
    if rng.random() < 0.5:
        given = replace(given, home=rng.integers(0, nodes, groups), max_migration_cost=3.0)
    edges = rng.integers(0, groups, (8, 2))
    traffic = Traffic(edges[:, 0], edges[:, 1], rng.uniform(1, 9, 8), np.zeros(groups, np.int64))
    return Assignment(given, traffic, objective)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_small_cases_are_as_good_as_the_best_of_all_placements(objective: Objective) -> None:
    rng = np.random.default_rng(7)
    cases, best, excess = 14, 0, []
    for _ in range(cases):
        assignment = any_assignment(rng, objective)
        found, ideal = assignment.rank(answered(assignment)), best_of_all(assignment)
        assert found[0] <= ideal[0] + 1e-6  # reservations are kept wherever they can be
        best += tuple(round(v, 9) for v in found) == ideal
        excess.append(found[1] - ideal[1])
    assert best >= 0.8 * cases
    assert np.mean(excess) <= 0.01  # of all traffic, or of the variance of usage


def test_each_objective_is_best_at_what_it_is_for() -> None:
    given = problem([10.0] * 8, [1.0] * 8, nodes=4, room=4.0)
    found = {o: answered(Assignment(given, chain(8), o)) for o in OBJECTIVES}
    crossing = {o: 1 - chain(8).collocation(found[o]) for o in OBJECTIVES}
    used = {o: len(set(found[o].tolist())) for o in OBJECTIVES}
    assert used == {"equality": 4, "traffic": 2, "resource": 2}  # memory needs two
    assert crossing["equality"] == pytest.approx(3 / 7)  # four parts of the chain
    assert crossing["traffic"] == crossing["resource"] == pytest.approx(1 / 7)


def test_resource_packs_what_does_not_talk_and_traffic_spreads_it() -> None:
    silent = Traffic(*(np.empty(0, np.int64),) * 2, np.empty(0), np.zeros(4, np.int64))
    given = problem([20.0] * 4, [1.0] * 4, nodes=4, room=9.0)
    assert len(set(answered(Assignment(given, silent, "resource")).tolist())) == 1
    assert len(set(answered(Assignment(given, silent, "traffic")).tolist())) == 4


def test_a_good_placement_stays_and_the_budget_is_kept() -> None:
    given = problem([10.0] * 8, [1.0] * 8, nodes=4, room=4.0)
    settled = replace(given, home=answered(Assignment(given, chain(8), "resource")))
    assert np.array_equal(answered(Assignment(settled, chain(8), "resource")), settled.home)
    scattered = replace(given, home=np.arange(8) % 4, max_migration_cost=2.0)
    moved = answered(Assignment(scattered, chain(8), "resource"))
    assert 0 < scattered.cost(moved) <= 2
    assert chain(8).collocation(moved) > chain(8).collocation(scattered.home)


def test_nodes_that_leave_are_emptied_and_receive_nothing() -> None:
    given = problem([10.0] * 4, [1.0] * 4, nodes=3, room=4.0)
    given = replace(given, home=np.array([2, 2, 0, 1]), draining=np.array([False, False, True]))
    for objective in OBJECTIVES:
        assert 2 not in answered(Assignment(given, chain(4), objective))


def document(**changes: Any) -> dict[str, Any]:
    names = ["parse-0", "parse-1", "sum-0", "sum-1"]
    return {
        "policy": "resource-aware",
        "nodes": [{"name": n, "resources": {"cpu": 1, "memory": 1024}} for n in "abc"],
        "key_groups": [
            {"name": n, "load": 5, "resources": {"cpu": 0.5, "memory": 512}} for n in names
        ],
        "traffic": [{"from": f"parse-{i}", "to": f"sum-{i}", "rate": 10} for i in range(2)],
    } | changes


def test_a_document_may_ask_for_it_with_an_objective() -> None:
    check_document(document(objective="equality"), SCHEMA)
    placed = advise(document())["placement"]
    assert placed["parse-0"] == placed["sum-0"] != placed["parse-1"] == placed["sum-1"]
    assert set(advise(document(objective="equality"))["placement"].values()) == set("abc")
    assert any("2 of 3 nodes in use" in reason for reason in advise(document())["reasons"])


def test_reservations_that_no_node_has_room_for_are_reported() -> None:
    groups = [g | {"resources": {"cpu": 0.9}} for g in document()["key_groups"]]
    assert "cpu is exceeded on node" in advise(document(key_groups=groups))["infeasible"]


def test_an_objective_of_another_policy_is_refused() -> None:
    with pytest.raises(InvalidInput, match="only the policy resource-aware has one"):
        advise(document(policy="milp", objective="traffic"))


def test_a_run_places_key_groups_by_what_operators_reserve() -> None:
    nodes = np.array(["a", "b", "a", "b"])
    groups = KeyGroups(np.full(4, 0.1), np.full(4, 50.0), nodes)
    hot = ComponentObservation(
        "sum", ("sum",), 10.0, 0.01, 4, 0.4, key_groups=groups,
        reserved_cpu=0.4, reserved_memory_bytes=100.0,
    )  # fmt: skip
    seen = Observation(
        at_s=5.0, period_s=1.0, arrival_rate_per_s=10.0, backlog_rows=0.0, components=(hot,),
        nodes=tuple(NodeObservation(n, 1, 0.2, state_memory_bytes=250.0) for n in "ab"),
        traffic=(GroupTraffic("sum", "sum", np.array([0, 2]), np.array([1, 3]),
                                    np.array([9.0, 9.0])),),
        batches=BatchObservation(1, 1.0, 0.1, 10.0),
    )  # fmt: skip
    allocating = allocating_of(Settings(allocation="resource-aware"))
    assert allocating is not None
    record = allocating.plan(seen, wanted=2, dry_run=False)
    assert record is not None
    # Two of 0.4 CPU and 100 bytes fit on each node: the pairs that talk are brought together.
    assert len(record.moves) == 2
    assert record.planned_collocation == 1.0
    assert record.infeasible is None


def test_memory_is_declared_on_operators() -> None:
    road = Topology("road", "5s")
    road.add("parse", "SELECT 1", "in", memory=2e6)
    road.add("sum", "SELECT 1", "parse", memory=1e6)
    assert road.reserved_memory_bytes(["parse", "sum"]) == 3e6
    assert np.isnan(road.reserved_memory_bytes(["other"]))
    with pytest.raises(InvalidInput, match="memory is -1"):
        road.add("bad", "SELECT 1", "parse", memory=-1)
