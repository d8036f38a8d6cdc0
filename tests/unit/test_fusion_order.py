"""Cheap and selective operators first, where swapping them cannot be noticed."""

import itertools
import math

import numpy as np
import pytest

from penstock.fusion.order import (
    StatelessOperator,
    commute,
    decide_order,
    linear_runs,
    remeasured,
    work_per_row_s,
)


def step(
    name: str, selectivity: float, cost_s: float, reads: str = "", writes: str = ""
) -> StatelessOperator:
    return StatelessOperator(name, frozenset(reads), frozenset(writes), selectivity, cost_s)


ENRICH = step("enrich", 1.0, 0.010, reads="i", writes="m")
FILTER = step("filter", 0.1, 0.001, reads="t")


def test_a_filter_moves_before_what_it_spares_work() -> None:
    decision = decide_order([ENRICH, FILTER])
    assert decision.plan.order == ("filter", "enrich")
    assert decision.plan.current_cost_s == pytest.approx(0.011)
    assert decision.plan.expected_cost_s == pytest.approx(0.002)
    assert decision.plan.gain == pytest.approx(9 / 11)
    assert "enrich > filter -> filter > enrich" in decision.reasons[-1]


def test_a_filter_of_a_written_column_stays_behind() -> None:
    reads_it = step("filter", 0.1, 0.001, reads="m")
    assert not commute(ENRICH, reads_it)
    assert decide_order([ENRICH, reads_it]).plan.order == ("enrich", "filter")


def test_two_that_write_the_same_column_do_not_commute() -> None:
    assert not commute(step("a", 1, 1, writes="x"), step("b", 1, 1, writes="x"))


def test_changed_selectivities_change_the_proposal() -> None:
    run = [step("a", 0.2, 0.001, reads="x"), step("b", 0.9, 0.001, reads="y")]
    assert decide_order(run).plan.order == ("a", "b")
    later = remeasured(run, {"a": 0.9, "b": 0.1})
    assert decide_order(later).plan.order == ("b", "a")


def test_a_small_gain_changes_nothing() -> None:
    run = [step("a", 0.52, 0.001), step("b", 0.5, 0.001)]
    decision = decide_order(run)
    assert decision.plan.order == ("a", "b")
    assert decision.plan.gain == 0
    assert "kept" in decision.reasons[-1]


def test_nothing_is_moved_across_what_was_not_measured() -> None:
    unknown = step("unknown", math.nan, 0.001)
    decision = decide_order([ENRICH, unknown, FILTER])
    assert decision.plan.order == ("enrich", "unknown", "filter")
    assert "unknown" in decision.reasons[0]


def random_run(rng: np.random.Generator, size: int) -> list[StatelessOperator]:
    columns = list("uvwxyz")
    return [
        step(
            f"s{n}",
            float(rng.uniform(0, 1.5)),
            float(rng.uniform(0, 1)),
            reads="".join(rng.choice(columns, 1)),
            writes="".join(rng.choice(columns, 1)) if rng.random() < 0.4 else "",
        )
        for n in range(size)
    ]


@pytest.mark.parametrize("seed", range(10))
def test_the_order_is_the_best_that_keeps_what_does_not_commute(seed: int) -> None:
    run = random_run(np.random.default_rng(seed), 6)
    fixed = [(i, j) for i, j in itertools.combinations(range(6), 2) if not commute(run[i], run[j])]
    best = min(
        work_per_row_s([run[i] for i in order])
        for order in itertools.permutations(range(6))
        if all(order.index(i) < order.index(j) for i, j in fixed)
    )
    assert decide_order(run, least_gain=0.0).plan.expected_cost_s == pytest.approx(best)


def test_long_runs_improve_and_keep_what_does_not_commute() -> None:
    run = random_run(np.random.default_rng(1), 30)
    plan = decide_order(run).plan
    assert plan.gain > 0.05
    place = {name: n for n, name in enumerate(plan.order)}
    assert len(place) == 30
    for one, other in itertools.combinations(run, 2):
        if not commute(one, other):
            assert place[one.name] < place[other.name]


def test_runs_end_where_the_graph_forks_or_keeps_state() -> None:
    streams = [("src", "a"), ("a", "b"), ("b", "sum"), ("sum", "c"), ("c", "d"), ("c", "e")]
    assert linear_runs(streams, ["a", "b", "c", "d", "e"]) == (("a", "b"),)
