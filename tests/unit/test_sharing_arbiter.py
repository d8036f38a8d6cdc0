"""The arbiter against every division there is, and its steadiness."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.sharing.arbiter import Cluster, divide
from penstock.sharing.claims import Claims, Division
from penstock.sharing.knapsack import Items, best_steps

INF = math.inf


def claims(*topologies: dict[str, Any]) -> Claims:
    """Each has its curve, and a bound of 1 s and a weight of 1 unless said otherwise."""
    width = max(len(one["curve"]) for one in topologies)
    curves = [[*one["curve"], *[INF] * (width - len(one["curve"]))] for one in topologies]
    return Claims(
        tuple(one.get("name", f"t{place}") for place, one in enumerate(topologies)),
        np.array(curves, dtype=np.float64),
        np.array([one.get("bound_s", 1.0) for one in topologies]),
        np.full(len(topologies), 0.99),
        np.array([one.get("weight", 1.0) for one in topologies]),
        np.array([one.get("least", 1) for one in topologies], dtype=np.int64),
    )


latencies = st.one_of(st.just(INF), st.sampled_from([0.5, 0.9, 1.0, 1.5, 2.0, 3.0, 7.0]))
topologies = st.builds(
    lambda curve, least, weight: {"curve": curve, "least": least, "weight": weight},
    st.lists(latencies, min_size=1, max_size=5), st.integers(0, 2),
    st.sampled_from([0.5, 1.0, 1.0, 2.0, 3.0]),
)  # fmt: skip


def merit(asked: Claims, extra: tuple[int, ...]) -> tuple[float, int, float]:
    """Weight kept, how many are bounded, and the largest lateness (less is more)."""
    late = asked.lateness_at(np.array(extra))
    bounded = late[np.isfinite(late)]
    return (
        round(float(asked.weight[late <= 1].sum()), 6),
        len(bounded),
        -round(float(max(1.0, bounded.max(initial=1.0))), 9),
    )


def every_division(asked: Claims, processors: int) -> list[tuple[int, ...]]:
    room = processors - int(asked.least.sum())
    steps = range(min(asked.expected_s.shape[1], room + 1))
    ways = itertools.product(steps, repeat=len(asked.names))
    return [way for way in ways if sum(way) <= room]


@settings(max_examples=60, deadline=None)
@given(st.lists(topologies, min_size=1, max_size=4), st.integers(1, 12))
def test_no_division_is_better(asked_for: list[dict[str, Any]], processors: int) -> None:
    asked = claims(*asked_for)
    answer = divide(asked, Cluster(processors))
    got = np.array([answer.plan.processors[name] for name in asked.names])
    assert (got >= asked.least).all()
    if asked.least.sum() > processors:
        assert answer.infeasible is not None
        return
    assert got.sum() <= processors
    extra = tuple((got - asked.least).tolist())
    ways = every_division(asked, processors)
    best = max(merit(asked, way) for way in ways)
    assert merit(asked, extra) == best
    if best[0] == round(float(asked.weight.sum()), 6):
        assert answer.infeasible is None
        assert sum(extra) == min(sum(way) for way in ways if merit(asked, way) == best)
    else:
        assert answer.infeasible is not None
    late = {n: asked.lateness_at(np.array(extra))[i] for i, n in enumerate(asked.names)}
    assert set(answer.plan.kept) == {name for name in asked.names if late[name] <= 1}
    assert set(answer.plan.missed) == set(asked.names) - set(answer.plan.kept)


@settings(max_examples=60, deadline=None)
@given(st.lists(topologies, min_size=1, max_size=4), st.integers(1, 12))
def test_the_latest_is_helped_first(asked_for: list[dict[str, Any]], processors: int) -> None:
    """With the kept ones as they are, no other division of the rest has a smaller lateness."""
    asked = claims(*asked_for)
    if asked.least.sum() > processors:
        return
    answer = divide(asked, Cluster(processors)).plan
    got = [answer.processors[name] - int(asked.least[i]) for i, name in enumerate(asked.names)]
    kept = [name in answer.kept for name in asked.names]

    def order(way: tuple[int, ...]) -> list[float]:
        return sorted((x for x in asked.lateness_at(np.array(way)).tolist() if x > 1), reverse=True)

    others = [
        way for way in every_division(asked, processors)
        if all(w == g for w, g, k in zip(way, got, kept, strict=True) if k)
    ]  # fmt: skip
    mine = order(tuple(got))
    bounded = [x for x in mine if x < INF]
    for way in others:
        other = order(way)
        if len(other) == len(mine) and other.count(INF) == mine.count(INF):
            finite = [x for x in other if x < INF]
            assert not finite or finite[0] >= bounded[0]


def test_all_promises_with_the_fewest() -> None:
    answer = divide(claims({"curve": [3, 0.9, 0.1]}, {"curve": [0.8, 0.1]}), Cluster(8, slots=2))
    assert answer.plan == Division({"t0": 2, "t1": 1}, 2, ("t0", "t1"), {})
    assert answer.reasons == ("all 2 promises are kept with 3 of 8 processors",)
    assert answer.infeasible is None


def test_weights_decide_who_is_missed_and_by_how_much() -> None:
    curve = [4.0, 2.0, 0.9]
    asked = claims({"curve": curve, "name": "audit"},
                   {"curve": curve, "name": "orders", "weight": 3})  # fmt: skip
    answer = divide(asked, Cluster(5))
    assert answer.plan == Division({"audit": 2, "orders": 3}, 5, ("orders",), {"audit": 2.0})
    assert answer.reasons[1] == (
        "audit: 2 s with 2 processors instead of 99% within 1 s; it needs 3, and the promises that "
        "are kept weigh more for what they take"
    )
    assert answer.infeasible == (
        "1 of 2 promises are kept with 5 of 5 processors, by weight 3 of 4; all would take 6"
    )


def test_many_small_weigh_more_than_one_large() -> None:
    large = {"curve": [9.0, 9.0, 9.0, 9.0, 0.5], "weight": 1.9}
    small = {"curve": [9.0, 9.0, 0.5]}
    answer = divide(claims(large, small, small, small), Cluster(10))
    assert answer.plan.kept == ("t1", "t2", "t3")
    heavier = divide(claims(large | {"weight": 2.5}, small, small, small), Cluster(10))
    assert heavier.plan.kept == ("t0", "t1")


def test_what_can_never_be_kept_takes_nothing_from_those_that_can() -> None:
    hopeless = {"curve": [INF, 30.0, 20.0, 10.0, 10.0], "weight": 100}
    answer = divide(claims(hopeless, {"curve": [3, 0.5]}), Cluster(5))
    assert answer.plan.processors == {"t0": 3, "t1": 2}
    assert "no number that it may have keeps the promise: the best is 10 s" in answer.reasons[1]
    alone = divide(claims(hopeless), Cluster(50))
    assert alone.plan.processors == {"t0": 4}  # a fifth would not help


def test_a_minimum_is_never_cut() -> None:
    answer = divide(claims({"curve": [1], "least": 3}, {"curve": [1], "least": 3}), Cluster(4))
    assert answer.plan.processors == {"t0": 3, "t1": 3}
    assert answer.plan.executors == 6
    assert answer.infeasible is not None
    assert answer.infeasible.startswith("the minima of all topologies are 6 processors, 4 are ther")


def test_two_that_are_near_do_not_take_turns() -> None:
    """Their needs change places each period; who was kept stays kept."""
    near, far = [4.0, 1.5, 0.9, 0.5], [4.0, 2.0, 1.2, 0.9]
    previous: Division | None = None
    kept = set()
    for period in range(10):
        curves = (near, far) if period % 2 else (far, near)
        asked = claims(*({"curve": curve, "weight": 1 + 0.05 * ((i + period) % 2)}
                         for i, curve in enumerate(curves)))  # fmt: skip
        previous = divide(asked, Cluster(6, previous=previous)).plan
        kept.add(previous.kept)
    assert len(kept) == 1


def test_a_need_that_wavers_changes_nothing() -> None:
    before = divide(claims({"curve": [3.0, 1.02, 0.8]}), Cluster(8)).plan
    assert before.processors == {"t0": 3}
    wavers = claims({"curve": [2.9, 0.97, 0.75]})
    assert divide(wavers, Cluster(8, previous=before)).plan.processors == {"t0": 3}
    assert divide(wavers, Cluster(8)).plan.processors == {"t0": 2}
    falls = claims({"curve": [2.0, 0.85, 0.6]})
    assert divide(falls, Cluster(8, previous=before)).plan.processors == {"t0": 2}


def test_hysteresis_never_misses_a_promise_that_fits() -> None:
    before = divide(claims({"curve": [3, 1.02, 0.8]}, {"curve": [0.5]}), Cluster(4)).plan
    both = claims({"curve": [2.9, 0.97, 0.75]}, {"curve": [3, 0.9]})
    assert divide(both, Cluster(4, previous=before)).plan.kept == ("t0", "t1")


@settings(max_examples=60, deadline=None)
@given(st.lists(topologies, min_size=1, max_size=4), st.integers(3, 12))
def test_asked_again_nothing_changes(asked_for: list[dict[str, Any]], processors: int) -> None:
    asked = claims(*asked_for)
    first = divide(asked, Cluster(processors)).plan
    assert divide(asked, Cluster(processors, previous=first)).plan == first


@pytest.mark.parametrize("seed", range(5))
def test_a_knapsack_too_large_for_a_table_is_short_by_less_than_one_item(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cost, value = rng.integers(1, 30, 60), rng.integers(1, 1000, 60)
    items = Items(np.full(60, 10**6), np.ones(60, dtype=np.int64), cost, value)
    exact = items.value(best_steps(items, 200))
    for cells in (10, 500, 4000):
        steps = best_steps(items, 200, most_cells=cells)
        assert items.cost(steps) <= 200
        assert exact - value.max() < items.value(steps) <= exact


def test_no_topology_is_no_division() -> None:
    empty = Claims((), np.empty((0, 1)), *(np.empty(0) for _ in range(3)),
                   np.empty(0, dtype=np.int64))  # fmt: skip
    assert divide(empty, Cluster(4)).plan == Division({}, 0, (), {})
