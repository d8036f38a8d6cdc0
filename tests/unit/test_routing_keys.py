"""Keys to nodes: every row has one node, the ring moves little, hot keys are spread evenly."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InvalidInput
from penstock.routing.advice import load_ratio, node_loads
from penstock.routing.baselines import candidates, plain_hash_routes, two_choices_routes
from penstock.routing.decision import decide_routes
from penstock.routing.frequent_keys import FrequentKeys, KeyCounts
from penstock.routing.hashing import Hashes, key_hashes
from penstock.routing.ring import Ring, ring_of
from penstock.routing.route_table import HotKey, RouteTable, table_of
from penstock.routing.splitting import PAPER_RULE, SplitRule, split_keys

KEYS = key_hashes(np.arange(5_000))
SEEDS = st.integers(0, 2**32 - 1)


def zipf_counts(exponent: float, keys: int = 2_000, rows: int = 1_000_000) -> KeyCounts:
    shares = np.arange(1, keys + 1) ** -exponent
    counts = np.floor(rows * shares / shares.sum())
    names = tuple(f"k{number}" for number in range(keys))
    return KeyCounts(names, key_hashes(list(names)), counts, float(counts.sum()))


def counted(keys: Any) -> FrequentKeys:
    found = FrequentKeys()
    found.add(key_hashes(keys), [keys], np.random.default_rng(0), sampled_share=1.0)
    return found


# Hashes


def test_a_key_hashes_alike_in_every_form_it_may_come_in() -> None:
    texts = ["a", "b", None, "a", "ü"]
    plain = key_hashes(texts)
    for column in (
        pa.array(texts),
        pa.array(texts, pa.large_string()),
        pa.array(texts).dictionary_encode(),
        pa.chunked_array([texts[:2], texts[2:]]),
        np.array(texts, dtype=object),
    ):
        assert np.array_equal(key_hashes(column), plain)
    assert len(set(plain.tolist())) == 4
    numbers = key_hashes([1, -2, 3])
    for column in (np.array([1, -2, 3], np.int16), pa.array([1, -2, 3], pa.int32())):
        assert np.array_equal(key_hashes(column), numbers)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1.5, None, -0.0, 0.0, float("nan")]),
        pa.array([True, False, None]),
        pa.array([1, 2, None], pa.timestamp("us")),
        pa.array([1, 2, None], pa.date32()),
        pa.array([b"x", None]),
        pa.array([None, None]),
        pa.array([], pa.string()),
        pa.array([1, 2], pa.int64()).cast(pa.decimal128(30, 2)),
    ],
)
def test_every_plain_type_may_be_a_key(column: Any) -> None:
    hashes = key_hashes(column)
    assert len(hashes) == len(column)
    assert np.array_equal(hashes, key_hashes(column))


def test_the_order_of_key_columns_counts() -> None:
    left, right = [1, 2, 1], [2, 1, 2]
    pair = key_hashes(left, right)
    assert pair[0] == pair[2]
    assert pair[0] != pair[1]
    assert not np.array_equal(pair, key_hashes(right, left))


@pytest.mark.parametrize("column", [[1, "a"], [[1], [2]], [{"a": 1}], [2**70]])
def test_what_cannot_be_a_key_is_refused(column: Any) -> None:
    with pytest.raises(InvalidInput, match="key column"):
        key_hashes(column)


# The ring


@settings(max_examples=40, deadline=None)
@given(st.sets(st.integers(0, 10_000), min_size=2, max_size=40), st.data())
def test_a_node_that_leaves_moves_only_its_own_keys(nodes: set[int], data: st.DataObject) -> None:
    gone = data.draw(st.sampled_from(sorted(nodes)))
    before = ring_of(nodes, 16).routes(KEYS)
    after = ring_of(nodes - {gone}, 16).routes(KEYS)
    assert np.array_equal(before[before != gone], after[before != gone])
    assert set(after.tolist()) <= nodes - {gone}


@given(st.permutations(range(12)))
def test_the_order_of_nodes_does_not_matter(nodes: list[int]) -> None:
    assert np.array_equal(Ring(tuple(nodes), 8).routes(KEYS), ring_of(12, 8).routes(KEYS))


def test_a_ring_is_even_where_plain_hashing_relocates_all() -> None:
    ring = ring_of(16)
    assert ring.shares.sum() == pytest.approx(1)
    assert load_ratio(ring.shares) < 2 / 16  # two deviations of 1 / sqrt(256)
    moved = np.mean(ring.routes(KEYS) != ring_of(17).routes(KEYS))
    assert moved < 2 / 17
    assert np.mean(plain_hash_routes(KEYS, 16) != plain_hash_routes(KEYS, 17)) > 0.9


@pytest.mark.parametrize("nodes", [[], [1, 1], [-1], range(5000)])
def test_a_ring_of_bad_nodes_is_refused(nodes: Any) -> None:
    with pytest.raises(InvalidInput, match="ring"):
        ring_of(nodes)


# Frequent keys


def test_merged_sketches_are_the_sketch_of_the_union() -> None:
    rng = np.random.default_rng(3)
    left, right = rng.integers(0, 500, 3_000), rng.integers(250, 900, 3_000)
    merged, union = counted(left), counted(np.concatenate([left, right]))
    merged.merge(FrequentKeys.from_bytes(counted(right).to_bytes()))
    assert merged.total_rows == union.total_rows == 6_000
    ours, theirs = merged.top(1_000), union.top(1_000)
    assert ours.labels == theirs.labels
    assert np.array_equal(ours.counts, theirs.counts)
    assert np.array_equal(ours.hashes, theirs.hashes)


def test_counts_stay_within_the_error_when_keys_overflow_the_sketch() -> None:
    rng = np.random.default_rng(4)
    batches = [rng.zipf(1.2, 20_000) for _ in range(6)]
    merged = FrequentKeys()
    for batch in batches:
        merged.merge(counted(batch))
    values, counts = np.unique(np.concatenate(batches), return_counts=True)
    assert len(values) > 2**12
    truth = dict(zip(map(str, values), counts, strict=True))
    top = merged.top(100)
    for label, count in zip(top.labels, top.counts, strict=True):
        assert abs(count - truth[label]) <= merged.error_rows
    assert top.labels[:5] == ("1", "2", "3", "4", "5")


def test_a_sample_finds_the_same_hot_keys() -> None:
    keys = np.random.default_rng(5).zipf(1.5, 200_000)
    sampled = FrequentKeys()
    sampled.add(key_hashes(keys), [keys], np.random.default_rng(6))
    assert sampled.total_rows == pytest.approx(200_000, rel=0.01)
    top = sampled.top(3)
    assert top.labels == ("1", "2", "3")
    assert top.counts[0] == pytest.approx(np.sum(keys == 1), rel=0.1)


def test_a_damaged_sketch_is_refused() -> None:
    with pytest.raises(InvalidInput, match="damaged"):
        FrequentKeys.from_bytes(counted([1, 2, 3]).to_bytes()[:9])


# Splitting


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(1, 10**9), min_size=1, max_size=40),
    st.integers(1, 40),
    st.sampled_from([PAPER_RULE, SplitRule(), SplitRule(top_k=5, parts_per_node=7)]),
)
def test_parts_are_proportional_to_frequency(
    counts: list[int], nodes: int, rule: SplitRule
) -> None:
    counts.sort(reverse=True)
    names = tuple(map(str, counts))
    hashes = key_hashes(np.arange(len(counts)))
    keys = KeyCounts(names, hashes, np.array(counts, float), float(sum(counts)))
    splits = split_keys(keys, ring_of(nodes, 16), rule)
    top = np.array(counts[: rule.top_k], float)
    unit = top[-1] if rule.parts_per_node is None else sum(counts) / (nodes * rule.parts_per_node)
    unit = max(unit, 1.0, top.sum() / 1e6)
    assert np.all(np.abs(splits.parts - np.maximum(1, top / unit)) <= 0.5)
    assert len(splits.part_nodes) == splits.parts.sum()
    assert set(splits.part_nodes.tolist()) <= set(range(nodes))


@pytest.mark.parametrize("exponent", [0.0, 0.8, 1.2, 1.5, 2.5])
@pytest.mark.parametrize("nodes", [2, 8, 32])
def test_no_node_exceeds_the_bound_but_for_keys_that_are_whole(exponent: float, nodes: int) -> None:
    keys, ring, rule = zipf_counts(exponent), ring_of(nodes), SplitRule()
    beyond = slice(rule.top_k, None)
    others = node_loads(ring.routes(keys.hashes[beyond]), nodes, keys.counts[beyond])
    splits = split_keys(keys, ring, rule, others)
    whole = splits.parts == 1
    sizes = np.repeat(splits.keys.counts / splits.parts, splits.parts)
    load = others + node_loads(splits.part_nodes, nodes, sizes)
    fixed = others + node_loads(
        ring.routes(splits.keys.hashes[whole]), nodes, splits.keys.counts[whole]
    )
    mean = keys.total_rows / nodes
    assert load.sum() == pytest.approx(keys.total_rows)
    assert np.all(load <= np.maximum(fixed, (1 + 0.05) * mean) + 1e-6)


def test_whole_keys_stay_where_the_ring_has_them() -> None:
    keys, ring = zipf_counts(0.0, keys=50_000), ring_of(8)
    splits = split_keys(keys, ring, SplitRule(top_k=50))
    assert splits.parts.tolist() == [1] * 50
    assert table_of(ring, splits).hot == ()
    assert np.array_equal(splits.part_nodes, ring.routes(keys.hashes[:50]))


# Route tables


def hot_table(exponent: float = 1.5, nodes: int = 8) -> RouteTable:
    ring = ring_of(nodes)
    return table_of(ring, split_keys(zipf_counts(exponent), ring, SplitRule()))


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(1, 12), st.floats(0, 3), st.integers(0, 10**9))
def test_every_row_gets_one_node_and_cold_keys_the_ring_s(
    seed: int, nodes: int, exponent: float, first_row: int
) -> None:
    table = hot_table(exponent, nodes)
    drawn = np.random.default_rng(seed).integers(0, 60, 500)
    keys = [f"k{number}" for number in drawn]
    routes = table.routes(pa.array(keys), first_row=first_row)
    assert len(routes) == 500
    assert set(routes.tolist()) <= set(range(nodes))
    hot = {key.label: set(key.nodes) for key in table.hot}
    for key, route, owner in zip(keys, routes, table.ring.routes(key_hashes(keys)), strict=True):
        assert route in hot[key] if key in hot else route == owner
    again = RouteTable.from_json(table.to_json())
    assert again == table
    assert np.array_equal(again.routes(keys, first_row=first_row), routes)


@pytest.mark.parametrize("period", [1, 2, 3, 7, 8, 13, 89, 100])
def test_rows_of_a_hot_key_are_spread_evenly_at_any_period(period: int) -> None:
    keys = np.where(np.arange(100_000) % period == 0, 7, 1_000_000 + np.arange(100_000))
    hot = HotKey("7", int(key_hashes([7])[0]), (0, 1, 2, 3))
    table = RouteTable(ring_of(4), (hot,))
    got = np.bincount(table.routes(keys)[keys == 7], minlength=4)
    assert np.abs(got - got.mean()).max() <= 3 * np.sqrt(got.mean())  # as even as dice would


def test_hot_keys_at_one_place_of_the_ring_are_told_apart() -> None:
    base = 0xABCD << 48
    hot = tuple(HotKey(str(n), base + n, (n, n)) for n in range(5))
    table = RouteTable(ring_of(5), hot)
    hashes: Hashes = np.array([base + n for n in (4, 2, 0, 1, 3, 9)], dtype=np.uint64)
    owner = int(table.ring.routes(hashes[-1:])[0])
    assert table.routes_of(hashes).tolist() == [4, 2, 0, 1, 3, owner]


def test_skew_is_balanced_from_sketches_of_two_lanes() -> None:
    rng = np.random.default_rng(8)
    keys = rng.zipf(1.5, 100_000) % 16_000
    sketch = counted(keys[:20_000])
    sketch.merge(counted(keys[20_000:40_000]))
    decision = decide_routes(sketch, ring_of(8), SplitRule())
    plain = node_loads(plain_hash_routes(key_hashes(keys), 8), 8)
    ours = node_loads(decision.plan.routes(keys), 8)
    assert ours.sum() == plain.sum() == 100_000
    assert ours.max() <= 1.3 * ours.mean() < plain.max()
    assert decision.reasons[0].startswith("split '1' (3")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"nodes": []}, "nodes"),
        ({"nodes": [0, 0]}, "twice"),
        ({"virtual_nodes": 0}, "virtual_nodes"),
        ({"hot": [{"key": "a", "hash": "xyz", "nodes": [0, 1]}]}, r"hot\[0\].hash"),
        ({"hot": [{"key": "a", "hash": "0" * 16, "nodes": [0, 99]}]}, "on no node"),
        ({"hot": [{"key": c, "hash": "0" * 16, "nodes": [0, 1]} for c in "ab"]}, "twice"),
    ],
)
def test_a_bad_table_is_refused(change: dict[str, Any], sentence: str) -> None:
    document = {**json.loads(hot_table().to_json()), **change}
    with pytest.raises(InvalidInput, match=sentence):
        RouteTable.from_json(json.dumps(document))


# Two choices


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(1, 20))
def test_two_choices_send_each_row_to_one_of_its_keys_two_nodes(seed: int, nodes: int) -> None:
    hashes = key_hashes(np.random.default_rng(seed).integers(0, 50, 400))
    first, second = candidates(hashes, nodes)
    routes, load = two_choices_routes(hashes, np.zeros(nodes))
    assert np.all((routes == first) | (routes == second))
    assert np.all((first != second) | (nodes == 1))
    assert np.array_equal(load, node_loads(routes, nodes))


def test_two_choices_are_more_even_than_one() -> None:
    hashes = key_hashes(np.random.default_rng(1).zipf(1.2, 50_000) % 1_000)
    routes, _ = two_choices_routes(hashes, np.zeros(8))
    one = load_ratio(node_loads(plain_hash_routes(hashes, 8), 8))
    assert load_ratio(node_loads(routes, 8)) < one / 2


def test_a_large_table_routes_as_a_small_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes at all turns are kept in memory only while they are few."""
    rng = np.random.default_rng(0)
    hot = tuple(
        HotKey(str(key), int(key_hashes([key])[0]), tuple(rng.integers(0, 16, 40).tolist()))
        for key in range(1, 30)
    )
    keys = rng.zipf(1.5, 40_000)
    small = RouteTable(ring_of(16), hot).routes(keys, first_row=5)
    monkeypatch.setattr("penstock.routing.route_table._MOST_AT_TURN", 1)
    assert (RouteTable(ring_of(16), hot).routes(keys, first_row=5) == small).all()
