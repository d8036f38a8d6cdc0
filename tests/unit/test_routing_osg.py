"""OSG: what the sketches promise, and that costly values do not pile up."""

import heapq

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from experiments.routing.trials.greedy import greedy_schedule
from penstock.errors import InvalidInput
from penstock.routing.advice import node_loads
from penstock.routing.cost_sketch import empty_cost_sketch
from penstock.routing.count_min import CountMin, CountMinShape, empty_count_min
from penstock.routing.hashing import key_hashes
from penstock.routing.levelling import level
from penstock.routing.osg import batch_schedule, osg_batch_routes

VALUES = st.lists(st.integers(0, 300), min_size=1, max_size=300)
LOADS = st.lists(st.integers(0, 50), min_size=1, max_size=12)


def sketched(values: list[int], shape: CountMinShape) -> CountMin:
    return empty_count_min(shape).add(key_hashes(np.array(values, dtype=np.int64)))


@settings(max_examples=80, deadline=None)
@given(VALUES, st.floats(0.01, 0.9), st.floats(0.01, 0.9), st.integers(0, 1000))
def test_count_min_never_underestimates(
    values: list[int], error: float, failure: float, seed: int
) -> None:
    sketch = sketched(values, CountMinShape(error, failure, seed))
    distinct, counts = np.unique(values, return_counts=True)
    assert np.all(sketch.estimate(key_hashes(distinct)) >= counts)
    assert sketch.total == len(values)


@pytest.mark.parametrize("error", [0.05, 0.005])
def test_the_error_of_count_min_is_within_its_bound(error: float) -> None:
    failure, beyond, asked = 0.05, 0, 0
    for seed in range(40):
        values = np.random.default_rng(seed).zipf(1.1, 20_000) % 5_000
        distinct, counts = np.unique(values, return_counts=True)
        sketch = sketched(values.tolist(), CountMinShape(error, failure, seed))
        excess = sketch.estimate(key_hashes(distinct)) - counts
        beyond += int(np.sum(excess > error * sketch.total))
        asked += len(distinct)
    assert beyond <= failure * asked


@settings(max_examples=40, deadline=None)
@given(VALUES, VALUES)
def test_merged_count_min_is_that_of_the_union(left: list[int], right: list[int]) -> None:
    shape = CountMinShape(0.05, 0.05, 3)
    merged = sketched(left, shape).merge(sketched(right, shape))
    assert np.array_equal(merged.table, sketched(left + right, shape).table)


def test_sketches_of_other_shapes_do_not_merge() -> None:
    with pytest.raises(InvalidInput, match="differ in shape"):
        empty_count_min(CountMinShape(seed=1)).merge(empty_count_min(CountMinShape(seed=2)))
    with pytest.raises(InvalidInput, match="differ in shape"):
        empty_cost_sketch(CountMinShape(seed=1)).merge(empty_cost_sketch(CountMinShape(seed=2)))


@settings(max_examples=40, deadline=None)
@given(VALUES, VALUES)
def test_merged_costs_are_those_of_the_union(left: list[int], right: list[int]) -> None:
    parts = []
    for values in (left, right, left + right):
        column = np.array(values, dtype=np.int64)
        parts.append(empty_cost_sketch().learn(key_hashes(column), 2.0 * column))
    merged = parts[0].merge(parts[1])
    assert np.array_equal(merged.occurrences, parts[2].occurrences)
    assert np.array_equal(merged.seconds, parts[2].seconds)


def test_costs_are_learnt_and_lie_between_the_least_and_the_largest() -> None:
    values = np.random.default_rng(0).integers(0, 10, 5_000)
    sketch = empty_cost_sketch(CountMinShape(0.005, 0.01)).learn(
        key_hashes(values), 0.01 * (1 + values)
    )
    asked = key_hashes(np.arange(10))
    assert sketch.estimate_s(asked) == pytest.approx(0.01 * (1 + np.arange(10)))
    coarse = empty_cost_sketch(CountMinShape(0.9, 0.5)).learn(key_hashes(values), 0.01 + 0 * values)
    assert coarse.estimate_s(asked) == pytest.approx([0.01] * 10)
    assert sketch.estimate_s(key_hashes([77]))[0] == pytest.approx(sketch.mean_s, rel=1)
    assert empty_cost_sketch().estimate_s(asked).tolist() == [1.0] * 10


@given(LOADS, st.integers(0, 200), st.integers(1, 9))
def test_levelling_is_the_greedy_choice_row_by_row(loads: list[int], rows: int, cost: int) -> None:
    heap = [(float(load), node) for node, load in enumerate(loads)]
    heapq.heapify(heap)
    greedy = [0] * len(loads)
    for _ in range(rows):
        load, node = heap[0]
        greedy[node] += 1
        heapq.heapreplace(heap, (load + cost, node))
    dealt = level(np.array(loads, dtype=float), rows, float(cost))
    assert dealt.sum() == rows
    assert sorted(np.array(loads) + dealt * cost) == sorted(load for load, _ in heap)


@given(LOADS, st.integers(0, 10**12), st.floats(0, 1e9))
def test_levelling_deals_all_rows_whatever_their_number(
    loads: list[int], rows: int, cost: float
) -> None:
    dealt = level(np.array(loads, dtype=float), rows, cost)
    assert dealt.sum() == rows
    assert dealt.min() >= 0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 90), max_size=200), LOADS)
def test_a_row_goes_to_the_task_that_is_free_first(costs: list[int], loads: list[int]) -> None:
    schedule = greedy_schedule(np.array(costs, dtype=float), np.array(loads, dtype=float))
    free = np.array(loads, dtype=float)
    for cost, task in zip(costs, schedule.routes.tolist(), strict=True):
        assert free[task] == free.min()
        free[task] += cost
    assert np.array_equal(free, schedule.free_at_s)


def test_with_arrivals_an_idle_task_is_not_ahead_of_its_time() -> None:
    arrivals, costs = np.array([0.0, 0.0, 5.0, 5.0, 5.1]), np.array([1.0, 8.0, 1.0, 1.0, 1.0])
    schedule = greedy_schedule(costs, np.zeros(2), arrivals)
    assert schedule.routes.tolist() == [0, 1, 0, 0, 0]
    assert schedule.free_at_s.tolist() == [8.0, 8.0]
    new = greedy_schedule(costs[:3], np.array([9.0, 9.0, 0.0]), arrivals[:3])
    assert new.routes.tolist() == [2, 2, 1] or new.routes.tolist() == [2, 2, 0]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=200), st.integers(1, 9), st.integers(0, 99))
@example([0, 0, 4, 4, 4], 3, 1)
def test_a_batch_is_dealt_whole_and_within_grahams_bound(
    classes: list[int], tasks: int, seed: int
) -> None:
    costs = np.random.default_rng(seed).uniform(0.01, 0.09, 6)
    rows = np.array(classes, dtype=np.int64)
    schedule = batch_schedule(rows, costs, np.zeros(tasks))
    loads = node_loads(schedule.routes, tasks, costs[rows])
    assert loads == pytest.approx(schedule.free_at_s)
    work = np.sort(costs[rows])[::-1]
    assert loads.max() <= work.sum() / tasks + work[0] + 1e-9
    if len(work) <= 8:
        shortest = _shortest(work.tolist(), [0.0] * tasks)
        assert loads.max() <= (4 / 3 - 1 / (3 * tasks)) * shortest * (1 + 1e-9)


def _shortest(work: list[float], loads: list[float]) -> float:
    """The length of the best schedule of all, by trying them."""
    if not work:
        return max(loads)
    return min(
        _shortest(work[1:], sorted([*loads[:task], loads[task] + work[0], *loads[task + 1 :]]))
        for task in range(len(loads))
        if loads[task] not in loads[:task]
    )


def test_a_batch_with_learnt_costs_is_even_where_round_robin_is_not() -> None:
    rng = np.random.default_rng(1)
    values = rng.integers(0, 20, 4_000)
    values[::8] = 19  # a regular pattern that round robin piles up on one task
    costs = np.linspace(0.01, 0.09, 20)
    sketch = empty_cost_sketch(CountMinShape(0.005, 0.01)).learn(key_hashes(values), costs[values])
    schedule = osg_batch_routes(key_hashes(values), sketch, np.zeros(8))
    ours = node_loads(schedule.routes, 8, costs[values])
    robin = node_loads(np.arange(4_000) % 8, 8, costs[values])
    assert ours.max() < 1.01 * ours.mean()
    assert robin.max() > 1.3 * robin.mean()


def test_no_task_at_all_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at least one task"):
        greedy_schedule(np.ones(3), np.empty(0))
    with pytest.raises(InvalidInput, match="at least one task"):
        batch_schedule(np.zeros(3, dtype=np.int64), np.ones(1), np.empty(0))
