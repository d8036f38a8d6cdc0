"""Costs of operators that run in the same tasks, from their rows and their work together."""

import numpy as np
import pytest

from penstock.fusion.operator_costs import operator_costs_s

COSTS = np.array([1e-4, 2e-3, 5e-4])


def measured(spread: float, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """A chain whose selectivities vary by so much, and the work with so much noise."""
    rng = np.random.default_rng(1)
    came = rng.uniform(800, 1200, 24)
    half = 0.5 * (1 + spread * rng.uniform(-1, 1, 24))
    third = 0.3 * (1 + spread * rng.uniform(-1, 1, 24))
    rows = np.column_stack([came, came * half, came * half * third])
    return rows, (rows @ COSTS) * (1 + noise * rng.uniform(-1, 1, 24))


def test_proportions_that_change_tell_costs_apart() -> None:
    rows, work_s = measured(spread=0.3, noise=0.0)
    assert operator_costs_s(rows, work_s) == pytest.approx(COSTS, rel=0.1)
    rows, work_s = measured(spread=0.3, noise=0.05)
    found = operator_costs_s(rows, work_s)
    assert found[1] > 2 * found[2]
    assert found[1] > 5 * found[0]
    assert (rows @ found).sum() == pytest.approx(work_s.sum(), rel=0.02)


def test_proportions_that_stay_give_every_row_the_same_cost() -> None:
    rows, work_s = measured(spread=0.0, noise=0.05)
    found = operator_costs_s(rows, work_s)
    assert found == pytest.approx(np.full(3, work_s.sum() / rows.sum()), rel=0.05)


def test_no_cost_is_below_nothing_and_no_rows_say_nothing() -> None:
    rows = np.array([[100.0, 90.0], [100.0, 10.0], [100.0, 50.0]])
    assert (operator_costs_s(rows, np.array([1.0, 2.0, 1.5])) >= 0).all()
    assert np.isnan(operator_costs_s(np.zeros((2, 2)), np.zeros(2))).all()
