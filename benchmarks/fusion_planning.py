"""How fast fusion plans are found, and how cheap they are.

Run: python benchmarks/fusion_planning.py
"""

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from experiments.fusion.workloads.random_topologies import (
    group_shares,
    measured_graph,
    random_topology,
)
from penstock.fusion.components import enumerate_components
from penstock.fusion.costs import Costs, FusionLimits
from penstock.fusion.graph import OperatorGraph
from penstock.fusion.greedy import greedy
from penstock.fusion.initial import initial_plan
from penstock.fusion.members import Members, members_of
from penstock.fusion.planner import decide_fusion
from penstock.fusion.rebalancing import state_moves

MINUTES, GROUPS, DEGREE = 20, 32, 3


def run() -> Iterator[dict[str, Any]]:
    """One row for each comparison; a ratio above 1 says ours is better."""
    yield _greedy_time()
    yield _exact_cost()
    yield _exact_cost_within_size()
    yield _greedy_cost()
    yield _enumeration()
    yield _pricing()


def graph_of(operators: int) -> OperatorGraph:
    rng = np.random.default_rng(7)
    topology = random_topology(rng, operators, DEGREE)
    return measured_graph(rng, topology, group_shares(rng, MINUTES, GROUPS, True), 1)


def _conditions(operators: int) -> str:
    return (
        f"{operators} operators, {DEGREE * operators} streams, {MINUTES} windows x {GROUPS} groups"
    )


def _row(name: str, baseline: float, ours: float, unit: str, conditions: str) -> dict[str, Any]:
    ratio = baseline / ours
    return {
        "name": name, "baseline": baseline, "ours": ours, "unit": unit, "ratio": ratio,
        "conditions": conditions,
    }  # fmt: skip


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def _greedy_time() -> dict[str, Any]:
    """Algorithm 1 as printed prices every admissible move in every round."""
    small, large = graph_of(60), graph_of(1_000)
    plain_s, plain = _timed(lambda: _plain_greedy(Costs(small)))
    ours_s, ours = _timed(lambda: greedy(Costs(small), FusionLimits()))
    costs = Costs(small)
    large_s, plan = _timed(lambda: greedy(Costs(large), FusionLimits()))
    return _row(
        "fusion: greedy plan", plain_s, ours_s, "s",
        f"{_conditions(60)}; baseline: Algorithm 1 pricing every move one by one, plan cost "
        f"{costs.total(plain):.4g} (ours {costs.total(ours):.4g}); ours at 1000 operators: "
        f"{large_s:.1f} s, {len(plan)} components (limit 10 s)",
    )  # fmt: skip


def _plain_greedy(costs: Costs) -> list[Members]:
    plan = initial_plan(costs, FusionLimits())
    graph = costs.graph
    while True:
        before = costs.total(plan)
        best, chosen = before - 1e-6, None
        for source, target in itertools.permutations(plan, 2):
            for bit in [1 << p for p in range(graph.size) if source >> p & 1]:
                if graph.is_component(target | bit):
                    rest = [members for members in plan if members not in (source, target)]
                    pieces = graph.connected_pieces(source & ~bit)
                    cost = costs.total([*rest, *pieces, target | bit])
                    if cost < best:
                        best, chosen = cost, [*rest, *pieces, target | bit]
        if chosen is None:
            return plan
        plan = chosen


def _exact_cost() -> dict[str, Any]:
    graph = graph_of(180)
    seconds, decision = _timed(lambda: decide_fusion(Costs(graph), "mwsc"))
    plain = decide_fusion(Costs(graph), "greedy").plan.cost
    return _row(
        "fusion: cost of the mwsc plan", plain, decision.plan.cost, "rows",
        f"{_conditions(180)}; baseline: greedy; planned in {seconds:.1f} s (limit 30 s), gap "
        f"{decision.plan.gap:.2%}; {decision.reasons[0]}",
    )  # fmt: skip


def _exact_cost_within_size() -> dict[str, Any]:
    graph = graph_of(180)
    limits = FusionLimits(max_component_size=4)
    seconds, decision = _timed(lambda: decide_fusion(Costs(graph), "mwsc", limits))
    plain = decide_fusion(Costs(graph), "greedy", limits).plan.cost
    return _row(
        "fusion: cost of the mwsc plan, components of up to 4", plain, decision.plan.cost, "rows",
        f"{_conditions(180)}; baseline: greedy; planned in {seconds:.1f} s (limit 30 s), gap "
        f"{decision.plan.gap:.2%}; {decision.reasons[0]}",
    )  # fmt: skip


def _greedy_cost() -> dict[str, Any]:
    costs = Costs(graph_of(1_000))
    cut = decide_fusion(costs, "sparse-cut").plan.cost
    seconds, decision = _timed(lambda: decide_fusion(costs, "mwsc-greedy"))
    ours = decide_fusion(costs, "greedy").plan.cost
    return _row(
        "fusion: cost of the greedy plan", cut, ours, "rows",
        f"{_conditions(1_000)}; baseline: sparse-cut; mwsc-greedy: {decision.plan.cost:.4g} rows "
        f"in {seconds:.1f} s",
    )  # fmt: skip


def _enumeration() -> dict[str, Any]:
    graph = graph_of(180)
    size = 3
    baseline_s, every = _timed(
        lambda: [
            members
            for count in range(1, size + 1)
            for members in map(members_of, itertools.combinations(range(graph.size), count))
            if graph.is_component(members)
        ]
    )
    ours_s, found = _timed(lambda: enumerate_components(graph, size))
    return _row(
        "fusion: enumeration of components", baseline_s, ours_s, "s",
        f"{_conditions(180)}; all of up to {size} operators: {len(found.components)}; baseline: "
        f"test each of C(n, k) subsets ({len(every)} found)",
    )  # fmt: skip


def _pricing() -> dict[str, Any]:
    graph = graph_of(180)
    rule = Costs(graph).rule
    rng = np.random.default_rng(1)
    sets = [rng.choice(180, 30, replace=False) for _ in range(1_000)]
    load = np.stack([graph.input_rows[inside].sum(axis=0) for inside in sets])
    state = np.stack([graph.state_rows[inside].sum(axis=0) for inside in sets])
    baseline_s, apart = _timed(
        lambda: [state_moves(load[n : n + 1], state[n : n + 1], rule)[0] for n in range(len(sets))]
    )
    ours_s, together = _timed(lambda: state_moves(load, state, rule))
    if not np.array_equal(apart, together):
        raise AssertionError("one at a time and all at once must agree")
    return _row(
        "fusion: state moves of components", baseline_s, ours_s, "s",
        f"1000 components of 30 operators, {MINUTES} windows x {GROUPS} groups; baseline: one "
        "component at a time",
    )  # fmt: skip


if __name__ == "__main__":
    for row in run():
        print(
            f"{row['name']}: {row['baseline']:.4g} -> {row['ours']:.4g} {row['unit']} "
            f"({row['ratio']:.2f}x; {row['conditions']})"
        )
