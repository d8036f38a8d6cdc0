"""State moved by rescaling and rebalancing: the price of an adaptation."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from penstock.fusion.rebalancing import RebalancingRule, state_moves
from penstock.model.observation import Floats


def moved(load: list[list[float]], capacity: float, tolerance: float = 0.2) -> float:
    """One component whose key groups all have one row of state."""
    rows = np.array([load])
    rule = RebalancingRule(capacity, tolerance)
    return float(state_moves(rows, np.ones_like(rows), rule)[0])


def test_a_steady_even_load_moves_nothing() -> None:
    assert moved([[5.0] * 8] * 10, capacity=10.0) == 0


def test_one_instance_has_nothing_to_balance() -> None:
    assert moved([[9.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 9.0]], capacity=100.0) == 0


def test_growth_moves_what_the_new_instance_takes() -> None:
    # Two instances of four groups each become four: each new one takes two groups.
    assert moved([[1.0] * 8, [2.0] * 8], capacity=4.0) == 4


def test_shrinking_moves_what_the_closed_instances_held() -> None:
    assert moved([[2.0] * 8, [1.0] * 8], capacity=4.0) == 4


def test_skew_moves_groups_off_the_full_instance() -> None:
    # Hashed: groups 0 and 2 on one instance (14 rows), 1 and 3 on the other (2 rows).
    assert moved([[7.0, 1.0, 7.0, 1.0]], capacity=8.0) >= 1


def test_a_group_too_heavy_to_move_stays() -> None:
    assert moved([[100.0, 1.0]], capacity=51.0) == 0


def test_what_is_within_the_tolerance_is_left_alone() -> None:
    uneven = [[20.0, 18.0, 2.0, 0.0]]  # hashed: 22 and 18 rows
    assert moved(uneven, capacity=20.0, tolerance=0.2) == 0
    assert moved(uneven, capacity=20.0, tolerance=0.05) == 1


@settings(max_examples=60, deadline=None)
@given(
    arrays(np.float64, (3, 4, 6), elements=st.floats(0, 100)),
    arrays(np.float64, (3, 4, 6), elements=st.floats(0, 50)),
    st.floats(1, 200),
)
def test_many_at_once_equals_one_at_a_time_and_never_moves_more_than_all(
    load: Floats, state: Floats, capacity: float
) -> None:
    rule = RebalancingRule(capacity)
    together = state_moves(load, state, rule)
    apart = [state_moves(load[n : n + 1], state[n : n + 1], rule)[0] for n in range(3)]
    assert together.tolist() == apart
    assert (together >= 0).all()
    assert (state_moves(load, np.zeros_like(state), rule) == 0).all()
