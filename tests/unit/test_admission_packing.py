"""Best fit against a plain loop, the lower bound against optima, exact sums, node counts."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.admission.best_fit import best_fit
from penstock.admission.lower_bound import lower_bound
from penstock.admission.parallelism import NodeCounts, QueryCosts, node_counts
from penstock.admission.ticks import FULL, OVERSIZE, in_ticks
from penstock.errors import InvalidInput

SIZES = st.lists(st.integers(0, 30), max_size=40)


def plain_best_fit(sizes: list[int], room: list[int], new_room: int) -> list[int]:
    free, bins = list(room), []
    for size in sizes:
        fitting = [lane for lane in range(len(free)) if free[lane] >= size]
        if fitting:
            best = min(fitting, key=lambda lane: (free[lane], lane))
        else:
            best = len(free)
            free.append(new_room)
        free[best] -= size
        bins.append(best)
    return bins


@settings(max_examples=400)
@given(SIZES, st.lists(st.integers(0, 30), max_size=6), st.booleans())
def test_runs_are_best_fit_stream_by_stream(
    sizes: list[int], room: list[int], decreasing: bool
) -> None:
    sizes = sorted(sizes, reverse=True) if decreasing else sizes
    found = best_fit(np.array(sizes, dtype=np.int64), np.array(room, dtype=np.int64), 30)
    expected = plain_best_fit(sizes, room, 30)
    # Lanes of equal room may be exchanged; what is left in each must be the same.
    assert _left(sizes, found.tolist(), room) == _left(sizes, expected, room)


def _left(sizes: list[int], bins: list[int], room: list[int]) -> list[int]:
    free = room + [30] * (max([*bins, len(room) - 1]) + 1 - len(room))
    for size, lane in zip(sizes, bins, strict=True):
        free[lane] -= size
    assert min(free, default=0) >= 0
    return sorted(free)


def test_an_item_no_lane_can_hold_gets_one_to_itself() -> None:
    assert best_fit(np.array([40, 20, 10]), np.array([10]), 30).tolist() == [2, 1, 0]


def fewest_bins(sizes: list[int], capacity: int) -> int:
    for bins in range(len(sizes) + 1):
        if _fits(sorted(sizes, reverse=True), [capacity] * bins):
            return bins
    raise AssertionError


def _fits(sizes: list[int], free: list[int]) -> bool:
    if not sizes:
        return True
    for lane in {room: lane for lane, room in enumerate(free) if room >= sizes[0]}.values():
        rest = [*free]
        rest[lane] -= sizes[0]
        if _fits(sizes[1:], rest):
            return True
    return False


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(1, 12), max_size=8))
def test_the_bound_never_exceeds_the_optimum(sizes: list[int]) -> None:
    found = lower_bound(np.array(sizes, dtype=np.int64), 12)
    assert -(-sum(sizes) // 12) <= found <= fewest_bins(sizes, 12)


@pytest.mark.parametrize(
    ("sizes", "bound"),
    [
        ([], 0),
        ([0, 0], 0),
        ([6] * 5, 3),
        ([7] * 5, 5),  # by volume 3
        ([5] * 6, 3),  # two to a lane of 12: by volume 3
        ([9, 9, 9, 4, 4, 4], 4),  # nothing fits beside a nine
        ([5, 5, 5, 5, 5], 3),
        ([20, 6, 6], 2),  # more than a lane, and one for the rest
    ],
)
def test_known_bounds(sizes: list[int], bound: int) -> None:
    assert lower_bound(np.array(sizes, dtype=np.int64), 12) == bound


def test_the_bound_is_tight_where_volume_is_not() -> None:
    tight = sum(
        lower_bound(np.array(sizes), 12) == fewest_bins(list(sizes), 12)
        for sizes in itertools.combinations_with_replacement(range(3, 9), 5)
    )
    by_volume = sum(
        -(-sum(sizes) // 12) == fewest_bins(list(sizes), 12)
        for sizes in itertools.combinations_with_replacement(range(3, 9), 5)
    )
    assert tight > by_volume
    assert tight >= 0.9 * 252


def test_ten_tenths_fill_a_lane() -> None:
    tenths = in_ticks(np.full(10, 0.1 * 7), 7.0)
    assert tenths.sum() <= FULL
    assert lower_bound(tenths, FULL) == 1
    assert best_fit(tenths, np.empty(0, dtype=np.int64), FULL).tolist() == [0] * 10
    assert in_ticks(np.array([1e300, 7.1]), 7.0).tolist() == [OVERSIZE, OVERSIZE]


def test_node_counts_follow_equations_1a_and_1b() -> None:
    costs = QueryCosts(0.001, 0.0002, 900.0, headroom=0.1)
    assert node_counts(0.0, costs) == NodeCounts(1, 1)
    assert node_counts(9_000.0, costs) == NodeCounts(10, 2)
    assert node_counts(9_001.0, costs) == NodeCounts(11, 3)
    assert node_counts(9_000.0, QueryCosts(0.001, 0.0002, 900.0, headroom=0.5)).query == 18
    with pytest.raises(InvalidInput, match="headroom is 1"):
        QueryCosts(0.001, 0.0002, 900.0, headroom=1.0)


@given(st.floats(0, 1e6), st.floats(0, 0.9))
def test_no_node_is_busier_than_the_headroom_allows(rate: float, headroom: float) -> None:
    costs = QueryCosts(0.001, 0.0002, 900.0, headroom)
    nodes = node_counts(rate, costs)
    assert rate / nodes.query * 0.001 <= 1 - headroom + 1e-6
    assert nodes.query == 1 or rate / (nodes.query - 1) * 0.001 > 1 - headroom - 1e-6
    assert nodes.query * 900 / nodes.merge * 0.0002 <= 1 - headroom + 1e-6
