"""Every algorithm gives a plan; the exact one gives the cheapest there is."""

import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest

from experiments.fusion.trials.placement import place_instances
from penstock.fusion.attribute_choice import choose_attributes
from penstock.fusion.costs import Costs, FusionLimits
from penstock.fusion.graph import (
    OperatorGraph,
    OperatorStatistics,
    StreamStatistics,
    operator_graph,
)
from penstock.fusion.greedy import greedy
from penstock.fusion.initial import initial_plan
from penstock.fusion.members import Members, members_of
from penstock.fusion.mwsc import mwsc
from penstock.fusion.planner import ALGORITHMS, decide_fusion
from penstock.fusion.pool import without_redundant
from penstock.fusion.rebalancing import RebalancingRule


def random_graph(seed: int, size: int, state_rows: float = 40.0) -> OperatorGraph:
    """A drifting, skewed load and states heavy enough to matter; a keyless operator or two."""
    rng = np.random.default_rng(seed)
    windows, groups = 5, 8
    operators = []
    for n in range(size):
        key = tuple(f"a{a}" for a in rng.choice(4, 2, replace=False)) if rng.random() < 0.9 else ()
        state = rng.random((windows, groups)) * state_rows
        operators.append(OperatorStatistics(f"o{n}", key, state))
    streams = []
    for n in range(1, size):
        for up in {int(u) for u in rng.integers(0, n, 2)}:
            load = rng.lognormal(2.0, 1.0) * rng.random((windows, groups)) ** 2
            streams.append(StreamStatistics(f"o{up}", f"o{n}", load))
    return operator_graph(operators, streams)


def partitions(graph: OperatorGraph, rest: Members) -> Iterator[list[Members]]:
    """Every plan of the operators in `rest`."""
    if not rest:
        yield []
        return
    first = rest & -rest
    others = rest ^ first
    subset = others
    while True:
        members = subset | first
        if graph.is_component(members):
            for plan in partitions(graph, rest & ~members):
                yield [members, *plan]
        if not subset:
            return
        subset = (subset - 1) & others


def assert_is_plan(graph: OperatorGraph, components: list[Members]) -> None:
    assert sum(components) == (1 << graph.size) - 1
    assert sum(members.bit_count() for members in components) == graph.size
    assert all(graph.is_component(members) for members in components)


@pytest.mark.parametrize("seed", range(12))
def test_mwsc_equals_exhaustive_search(seed: int) -> None:
    graph = random_graph(seed, 5 + seed % 5)
    costs = Costs(graph, RebalancingRule(capacity_rows=20.0))
    cheapest = min(costs.total(plan) for plan in partitions(graph, (1 << graph.size) - 1))
    found = mwsc(costs, FusionLimits())
    assert_is_plan(graph, list(found.components))
    assert costs.total(found.components) == pytest.approx(cheapest, rel=1e-9)
    assert found.lower_bound == pytest.approx(cheapest, rel=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_mwsc_equals_exhaustive_search_within_limits(seed: int) -> None:
    graph = random_graph(seed, 8)
    costs = Costs(graph, RebalancingRule(capacity_rows=20.0))
    alone = costs.adaptation([1 << n for n in range(graph.size)])
    limits = FusionLimits(beta=float(alone.max()) + 60.0, max_component_size=4)
    assert limits.beta is not None
    cheapest = min(
        costs.total(plan)
        for plan in partitions(graph, (1 << graph.size) - 1)
        if max(members.bit_count() for members in plan) <= 4
        and costs.adaptation(plan).max() <= limits.beta
    )
    found = mwsc(costs, limits)
    assert costs.total(found.components) == pytest.approx(cheapest, rel=1e-9)


@pytest.mark.parametrize("seed", [1, 3, 4, 5, 17, 21, 28, 43])
def test_a_plan_within_beta_is_found_although_operators_alone_are_above_it(seed: int) -> None:
    graph = random_graph(seed, 7)
    costs = Costs(graph, RebalancingRule(capacity_rows=20.0))
    plans = list(partitions(graph, (1 << graph.size) - 1))
    most = [float(costs.adaptation(plan).max()) for plan in plans]
    limits = FusionLimits(beta=min(most) + 1e-9)
    assert limits.beta is not None
    assert limits.beta < costs.adaptation([1 << n for n in range(graph.size)]).max()
    cheapest = min(
        costs.total(p) for p, moved in zip(plans, most, strict=True) if moved <= limits.beta
    )
    for algorithm in ALGORITHMS[:-1]:
        decision = decide_fusion(costs, algorithm, limits)
        assert decision.infeasible is None, algorithm
        assert decision.plan.cost >= cheapest * (1 - 1e-9)
    exact = decide_fusion(costs, "mwsc", limits).plan
    assert exact.cost == pytest.approx(cheapest)
    assert exact.lower_bound == pytest.approx(cheapest, rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_a_pool_that_is_too_small_keeps_plan_and_bound_honest(seed: int) -> None:
    graph = random_graph(seed, 9)
    costs = Costs(graph, RebalancingRule(capacity_rows=20.0))
    exact = costs.total(mwsc(costs, FusionLimits()).components)
    found = mwsc(costs, FusionLimits(max_pool=5))
    assert_is_plan(graph, list(found.components))
    assert found.lower_bound <= exact * (1 + 1e-9)
    assert exact <= costs.total(found.components) * (1 + 1e-9)
    assert costs.total(found.components) <= costs.total(greedy(costs, FusionLimits())) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_no_plan_saves_more_than_the_attributes_allow(seed: int) -> None:
    graph = random_graph(seed, 8)
    most = max(
        sum(graph.internal_rows(members) for members in plan)
        for plan in partitions(graph, (1 << graph.size) - 1)
    )
    choice = choose_attributes(graph)
    assert choice.most_saved_rows == pytest.approx(most, rel=1e-6)
    assert_is_plan(graph, list(choice.components))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("state_rows", [0.0, 40.0, 4_000.0])
def test_greedy_is_never_worse_than_its_initial_plan(seed: int, state_rows: float) -> None:
    graph = random_graph(seed, 25, state_rows)
    costs = Costs(graph, RebalancingRule(capacity_rows=20.0))
    limits = FusionLimits()
    first, last = initial_plan(costs, limits), greedy(costs, limits)
    assert_is_plan(graph, first)
    assert_is_plan(graph, last)
    assert costs.total(last) <= costs.total(first) * (1 + 1e-9)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("size", [None, 3])
def test_every_algorithm_gives_a_plan_within_the_limits(algorithm: str, size: int | None) -> None:
    graph = random_graph(4, 30)
    costs = Costs(graph, RebalancingRule(capacity_rows=20.0))
    alone = float(costs.adaptation([1 << n for n in range(graph.size)]).max())
    limits = FusionLimits(beta=alone + 30.0, max_component_size=size, max_pool=500)
    decision = decide_fusion(costs, algorithm, limits)  # type: ignore[arg-type]
    assert decision.infeasible is None
    plan = decision.plan
    positions = {name: n for n, name in enumerate(graph.names)}
    components = [members_of(positions[o] for o in c.operators) for c in plan.components]
    assert_is_plan(graph, components)
    assert max(c.adaptation_cost for c in plan.components) <= alone + 30.0
    assert max(len(c.operators) for c in plan.components) <= (size or 30)
    assert plan.cost == pytest.approx(costs.total(components))
    assert decision == decide_fusion(Costs(graph, costs.rule), algorithm, limits)  # type: ignore[arg-type]


def test_state_too_dear_to_move_keeps_operators_apart() -> None:
    load = np.array([[1.0] * 8, [3.0] * 8, [1.0] * 8])
    operators = [OperatorStatistics(n, ("x",), np.full((3, 8), 1e6)) for n in ("o", "p")]
    graph = operator_graph(operators, [StreamStatistics("o", "p", load)])
    apart = RebalancingRule(capacity_rows=24.0)  # one instance each, two for both in a peak
    assert len(mwsc(Costs(graph, apart), FusionLimits()).components) == 2
    assert len(greedy(Costs(graph, apart), FusionLimits())) == 2
    roomy = RebalancingRule(capacity_rows=1e6)
    assert len(mwsc(Costs(graph, roomy), FusionLimits()).components) == 1


def test_paper_weights_prefer_few_components_to_a_cheap_plan() -> None:
    # o-p and q-r talk much, p-q hardly; keeping p-q apart costs 1 row, but one component fewer is
    # worth the whole load to eq. 3, whatever state it has to move.
    load = np.array([[25.0] * 4, [75.0] * 4])
    light = load / 1e3
    operators = [OperatorStatistics(n, ("x",), np.full((2, 4), 30.0)) for n in "opqr"]
    streams = [
        StreamStatistics("o", "p", load),
        StreamStatistics("p", "q", light),
        StreamStatistics("q", "r", load),
    ]
    costs = Costs(operator_graph(operators, streams), RebalancingRule(capacity_rows=600.0))
    exact = decide_fusion(costs, "mwsc").plan
    literal = decide_fusion(costs, "mwsc-literal").plan
    assert len(exact.components) == 2
    assert len(literal.components) == 1
    assert literal.cost > exact.cost


def test_redundant_operators_stay_where_they_save_most() -> None:
    keys = [OperatorStatistics(n, ("x",)) for n in "opq"]
    streams = [StreamStatistics("o", "p", 1.0), StreamStatistics("p", "q", 9.0)]
    costs = Costs(operator_graph(keys, streams))
    plan = without_redundant(costs, FusionLimits(), [members_of([0, 1]), members_of([1, 2])])
    assert sorted(plan) == [members_of([0]), members_of([1, 2])]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_beta_that_cannot_be_kept_is_broken_by_lone_operators_only(algorithm: str) -> None:
    graph = random_graph(4, 30)
    costs = Costs(graph, RebalancingRule(capacity_rows=20.0))
    beta = float(np.median(costs.adaptation([1 << n for n in range(graph.size)]))) + 1.0
    limits = FusionLimits(beta=beta, max_pool=500)
    decision = decide_fusion(costs, algorithm, limits)  # type: ignore[arg-type]
    over = [c for c in decision.plan.components if c.adaptation_cost > beta]
    assert (decision.infeasible is not None) == bool(over)
    assert all(len(component.operators) == 1 for component in over)


def test_an_operator_that_alone_exceeds_beta_is_infeasible() -> None:
    load = np.array([[1.0] * 8, [9.0] * 8])
    graph = operator_graph(
        [OperatorStatistics("o", ("x",), np.full((2, 8), 10.0)), OperatorStatistics("p", ("y",))],
        [StreamStatistics("o", "p", load)],
    )
    decision = decide_fusion(
        Costs(graph, RebalancingRule(capacity_rows=20.0)), "mwsc", FusionLimits(beta=5.0)
    )
    assert decision.infeasible is not None
    assert "beta is 5" in decision.infeasible
    assert len(decision.plan.components) == 2


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_operators_without_keys_or_streams_have_a_plan(algorithm: str) -> None:
    keyless = [OperatorStatistics(f"o{n}", ()) for n in range(12)]
    chain = [StreamStatistics(f"o{n}", f"o{n + 1}", 1.0) for n in range(11)]
    few = FusionLimits(max_pool=3)
    fused = decide_fusion(Costs(operator_graph(keyless, chain)), algorithm, few)  # type: ignore[arg-type]
    assert fused.plan.communication_cost <= 11
    assert all(component.key == () for component in fused.plan.components)
    apart = decide_fusion(Costs(operator_graph(keyless, [])), algorithm, few)  # type: ignore[arg-type]
    assert len(apart.plan.components) == 12
    assert apart.plan.cost == 0


def test_one_key_for_all_fuses_all_though_enumeration_stops_early() -> None:
    operators = [OperatorStatistics(f"o{n}", ("x",)) for n in range(12)]
    chain = [StreamStatistics(f"o{n}", f"o{n + 1}", 1.0 + n) for n in range(11)]
    costs = Costs(operator_graph(operators, chain))
    decision = decide_fusion(costs, "mwsc", FusionLimits(max_pool=3))
    assert len(decision.plan.components) == 1
    assert decision.plan.gap == 0


def test_placed_instances_of_parallel_operators_save_less_than_fusing_them() -> None:
    operators = [OperatorStatistics(f"o{n}", ("x",), np.full((2, 8), 5.0)) for n in range(4)]
    load = np.full((2, 8), 100.0)
    chain = [StreamStatistics(f"o{n}", f"o{n + 1}", load) for n in range(3)]
    costs = Costs(operator_graph(operators, chain), RebalancingRule(capacity_rows=200.0))
    placed = place_instances(costs, nodes=4)
    assert placed.instances == 16
    assert 0 < placed.communication_cost < costs.graph.total_rows
    assert decide_fusion(costs, "mwsc").plan.communication_cost == 0
    assert place_instances(costs, nodes=1).communication_cost == 0


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_an_exact_operator_is_fused_by_all_of_its_key(algorithm: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    plain = random_graph(seed, 9)
    graph = dataclasses.replace(
        plain, exact=tuple(bool(key) and rng.random() < 0.3 for key in plain.keys)
    )
    whole = {name for name, exact in zip(graph.names, graph.exact, strict=True) if exact}
    key_of = dict(zip(graph.names, graph.keys, strict=True))
    plan = decide_fusion(Costs(graph), algorithm, FusionLimits()).plan  # type: ignore[arg-type]
    for part in plan.components:
        for name in whole.intersection(part.operators):
            assert set(part.key) == set(key_of[name]), (part, name)


def test_a_join_shares_only_with_operators_that_have_all_of_its_key() -> None:
    def fused(join: tuple[str, ...]) -> set[frozenset[str]]:
        operators = [
            OperatorStatistics("average", ("vehicle", "direction", "segment")),
            OperatorStatistics("volume", ("direction", "segment")),
            OperatorStatistics("toll", join, exact=True),
        ]
        streams = [StreamStatistics(name, "toll", 100.0) for name in ("average", "volume")]
        plan = decide_fusion(Costs(operator_graph(operators, streams)), "mwsc").plan
        return {frozenset(part.operators) for part in plan.components}

    assert fused(("segment", "direction")) == {frozenset({"average", "volume", "toll"})}
    assert fused(("vehicle", "direction", "segment")) == {
        frozenset({"average", "toll"}), frozenset({"volume"}),
    }  # fmt: skip
