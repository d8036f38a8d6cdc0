"""Panes: where windows are cut, and where bursts go."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from penstock.errors import InvalidInput
from penstock.model.observation import Ints
from penstock.routing.advice import load_ratio, node_loads
from penstock.routing.panes import (
    RECENT_PANES,
    WARM_UP_PANES,
    PaneHistory,
    cut_pane,
    new_history,
    pane_length,
    pane_numbers,
    pane_routes,
    rate_aware_routes,
)

SIZES = st.lists(st.integers(1, 400), min_size=1, max_size=80)


def rows_of(sizes: list[int]) -> Ints:
    return np.repeat(np.arange(len(sizes)), sizes)


def seen(sizes: list[int], nodes: int) -> PaneHistory:
    return rate_aware_routes(rows_of(sizes), new_history(nodes))[1]


@given(st.integers(1, 10_000), st.integers(1, 10_000), st.integers(-(10**12), 10**12))
def test_no_pane_crosses_the_edge_of_a_window(window: int, slide: int, tick: int) -> None:
    length = pane_length(window, slide)
    start = int(pane_numbers([tick], length)[0]) * length
    assert start <= tick < start + length
    assert (window % length, slide % length) == (0, 0)


@pytest.mark.parametrize(("window", "slide"), [(0, 1), (5, -1)])
def test_windows_without_length_are_refused(window: int, slide: int) -> None:
    with pytest.raises(InvalidInput, match="window is"):
        pane_length(window, slide)


@settings(max_examples=60, deadline=None)
@given(SIZES, st.integers(1, 9), st.integers(1, 5))
def test_every_row_gets_one_node_and_batches_do_not_change_what_is_kept(
    sizes: list[int], nodes: int, batches: int
) -> None:
    panes = rows_of(sizes)
    history, received = new_history(nodes), np.zeros(nodes)
    for batch in np.array_split(panes, batches):
        routes, history = rate_aware_routes(batch, history)
        assert len(routes) == len(batch)
        received += node_loads(routes, nodes)
    assert received.sum() == sum(sizes)
    assert history.received_rows.sum() == sum(sizes[-nodes:])
    assert history.recent_sizes.tolist() == [float(s) for s in sizes[:-1]][-RECENT_PANES:]
    assert (history.open_pane, history.open_size) == (len(sizes) - 1, sizes[-1])


@settings(max_examples=60, deadline=None)
@given(SIZES, st.integers(1, 9))
def test_only_panes_beyond_mean_and_deviation_are_cut(sizes: list[int], nodes: int) -> None:
    history = new_history(nodes)
    for pane, size in enumerate(sizes):
        recent = np.array(sizes[max(0, pane - RECENT_PANES) : pane])
        cut, history = cut_pane(pane, size, history)
        warm = len(recent) >= WARM_UP_PANES
        limit = recent.mean() + recent.std() if warm else np.inf
        assume(not warm or abs(size - limit) > 1e-6)  # at the very edge floats decide
        is_large = size > limit
        assert cut.rows.sum() == size
        assert cut.nodes[0] == pane % nodes
        assert cut.rows[0] == (round(recent.mean()) if is_large else size)


def test_the_excess_goes_to_nodes_that_had_small_panes() -> None:
    sizes = [100, 100, 40, 100] * 8
    cut, after = cut_pane(32, 400, seen(sizes, 4))
    mean = round(np.mean(sizes))
    assert (int(cut.nodes[0]), int(cut.rows[0])) == (0, mean)
    got = np.bincount(cut.nodes, weights=cut.rows)
    assert got.tolist() == [160, 60, 120, 60]  # with 0, 100, 40 and 100 of the last three panes
    assert after.received_rows.tolist() == [160] * 4


def test_bursts_are_spread_where_plain_panes_pile_them_up() -> None:
    rng = np.random.default_rng(0)
    sizes = (rng.uniform(180, 220, 400) * np.where(rng.random(400) < 0.1, 5, 1)).astype(int)
    panes = rows_of(sizes.tolist())
    plain = node_loads(pane_routes(panes, 16), 16)
    ours = node_loads(rate_aware_routes(panes, new_history(16))[0], 16)
    assert load_ratio(ours) < load_ratio(plain) / 3


def test_a_pane_longer_than_a_batch_keeps_all_nodes_busy() -> None:
    # 60 minutes every minute in batches of a second: forty minutes of a steady 800 rows a second.
    history, nodes = new_history(8), 8
    for second in range(40 * 60):
        routes, history = rate_aware_routes(np.full(800, second // 60), history)
        assert node_loads(routes, nodes).tolist() == [100] * nodes
    burst, history = rate_aware_routes(np.full(4_000, 40), history)
    assert node_loads(burst, nodes).max() <= 501
    few, history = rate_aware_routes(np.full(40, 40), history)
    assert len(set(few.tolist())) == 1, "not worth a part of their own"
    assert history.received_rows.sum() == 7 * 60 * 800 + 4_040


@given(st.lists(st.integers(65, 4_000), min_size=1, max_size=7))
def test_few_panes_in_a_batch_are_dealt_evenly(sizes: list[int]) -> None:
    routes, _ = rate_aware_routes(rows_of(sizes), new_history(8))
    loads = node_loads(routes, 8)
    assert loads.max() <= max(-(-sum(sizes) // 8), 64) + 64


def test_rows_in_any_order_are_routed_as_many_to_each_node() -> None:
    sizes = [50] * 20 + [400]
    ordered, left = rate_aware_routes(rows_of(sizes), new_history(4))
    mixed = np.random.default_rng(2).permutation(rows_of(sizes))
    shuffled, right = rate_aware_routes(mixed, new_history(4))
    assert np.array_equal(node_loads(ordered, 4), node_loads(shuffled, 4))
    assert np.array_equal(left.recent_sizes, right.recent_sizes)


def test_late_rows_go_to_their_panes_node_and_change_no_statistics() -> None:
    history = seen([50] * 30, 4)
    routes, after = rate_aware_routes(np.full(1_000, 2), history)
    assert set(routes.tolist()) == {2}
    assert np.array_equal(after.recent_sizes, history.recent_sizes)
    assert (after.open_pane, after.open_size) == (29, 50)


def test_panes_far_apart_and_no_rows_at_all() -> None:
    far = np.array([0, 10**15, -(10**15), 10**15])
    routes, history = rate_aware_routes(far, new_history(3))
    assert routes.tolist() == (far % 3).tolist()
    empty, same = rate_aware_routes(np.empty(0, dtype=np.int64), history)
    assert len(empty) == 0
    assert same == history or same is history
