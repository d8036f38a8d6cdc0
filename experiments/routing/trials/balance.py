"""Runs of the pure routing decisions for R1, R2 and R3 (Balkesen et al. 2013, s. 6.4).

Open in the paper and chosen here: panes of one second; a node's load is what it was dealt in the
last round of panes (16 s); parts, sketch and virtual nodes as routing's defaults; 400,000 rows to
count keys and as many to measure; the number of nodes follows a trend from 4 to 32 and back with
steps of at most 4; a window is as long as the period between two changes.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from penstock.model.observation import Floats, Ints
from penstock.routing.advice import load_ratio, node_loads
from penstock.routing.baselines import plain_hash_routes
from penstock.routing.decision import decide_routes
from penstock.routing.frequent_keys import FrequentKeys
from penstock.routing.hashing import Hashes, key_hashes
from penstock.routing.panes import RECENT_PANES, cut_pane, new_history
from penstock.routing.ring import ring_of
from penstock.routing.route_table import RouteTable
from penstock.routing.splitting import SplitRule

NODES = 16
KEYS = 16_000
JUMP, JUMP_PROBABILITY = 5, 0.1
ROWS, QUICK_ROWS = 400_000, 60_000  # to count keys, and as many to measure
COUNTED_SHARE = 0.1  # of the rows, for the sketch


@dataclass(frozen=True)
class PaneRun:
    """R1, second by second: the input rate and the load ratios of both ways over the last round.

    The last two are over four rounds, as rate-aware panes level the last round by design.
    """

    rate_per_s: Floats
    plain: Floats
    rate_aware: Floats
    plain_long: Floats
    rate_aware_long: Floats


@dataclass(frozen=True)
class SkewRun:
    """R2 at one exponent: load ratios by K, and that of the number of keys for each node."""

    exponent: float
    paper: dict[int, float]  # parts by hash alone
    bounded: dict[int, float]  # parts avoid full nodes: routing's default
    keys_per_node: float


@dataclass(frozen=True)
class RelocationRun:
    """R3, change by change: share of keys relocated, and partial results to merge in a window."""

    nodes: Ints
    plain_moved: Floats
    ours_moved: Floats
    plain_merged: Floats
    ours_merged: Floats


def pane_run(seed: int, seconds: int) -> PaneRun:
    """One splitter, 18 to 22 thousand rows a second, five times as many now and then."""
    rng = np.random.default_rng(seed)
    jumps = np.where(rng.random(seconds) < JUMP_PROBABILITY, JUMP, 1)
    rate = np.floor(rng.uniform(18_000, 22_000, seconds) * jumps)
    plain, aware = np.zeros((seconds, NODES)), np.zeros((seconds, NODES))
    history = new_history(NODES)
    for second, rows in enumerate(rate.astype(int).tolist()):
        plain[second, second % NODES] = rows
        cut, history = cut_pane(second, rows, history)
        np.add.at(aware[second], cut.nodes, cut.rows)
    return PaneRun(rate, _ratios(plain, 1), _ratios(aware, 1), _ratios(plain, 4), _ratios(aware, 4))


def after_warm_up(ratios: Floats) -> Floats:
    """The ratios once the statistics of pane sizes are of full length."""
    return ratios[RECENT_PANES:]


def _ratios(loads: Floats, rounds: int) -> Floats:
    sums, panes = np.cumsum(loads, axis=0), rounds * NODES
    sums[panes:] -= sums[:-panes].copy()
    return np.array([load_ratio(load) for load in sums])


def skew_run(seed: int, exponent: float, tops: tuple[int, ...], rows: int) -> SkewRun:
    """16 K keys of a Zipf distribution on 16 nodes."""
    rng = np.random.default_rng(seed)
    hashes = key_hashes(rng.integers(0, 2**62, KEYS))
    counted = _counted(_zipf_rows(rng, exponent, rows), hashes, rng)
    measured = hashes[_zipf_rows(rng, exponent, rows)]

    def ratios(rule: SplitRule) -> float:
        table = decide_routes(counted, ring_of(NODES), rule).plan
        return load_ratio(node_loads(table.routes_of(measured), NODES))

    by_hash = {k: ratios(SplitRule(k, parts_per_node=None, load_bound=None)) for k in tops}
    held = node_loads(ring_of(NODES).routes(hashes), NODES)
    return SkewRun(exponent, by_hash, {k: ratios(SplitRule(k)) for k in tops}, load_ratio(held))


def relocation_run(seed: int, changes: int, exponent: float, rows: int) -> RelocationRun:
    """Node counts that follow a trend; `rows` arrive between two changes."""
    rng = np.random.default_rng(seed)
    hashes = key_hashes(rng.integers(0, 2**62, KEYS))
    nodes = _node_counts(rng, changes)
    plain, ours = [], []
    counted = _counted(_zipf_rows(rng, exponent, rows), hashes, rng)
    for number in nodes.tolist():
        table = decide_routes(counted, ring_of(number), SplitRule()).plan
        drawn = _zipf_rows(rng, exponent, rows)
        plain.append(_Period(plain_hash_routes(hashes, number), {}, _pairs(
            drawn, plain_hash_routes(hashes[drawn], number))))  # fmt: skip
        ours.append(_Period(table.ring.routes(hashes), _hot_nodes(table), _pairs(
            drawn, table.routes_of(hashes[drawn]))))  # fmt: skip
        counted = _counted(drawn, hashes, rng)
    return RelocationRun(
        nodes,
        np.array([_moved(hashes, a, b) for a, b in pairwise(plain)]),
        np.array([_moved(hashes, a, b) for a, b in pairwise(ours)]),
        np.array([float(len(np.union1d(a.pairs, b.pairs))) for a, b in pairwise(plain)]),
        np.array([float(len(np.union1d(a.pairs, b.pairs))) for a, b in pairwise(ours)]),
    )


@dataclass(frozen=True)
class _Period:
    owners: Ints  # of each key, if it is whole
    hot: dict[int, frozenset[int]]  # nodes of each key that is split
    pairs: Ints  # key and node of each partial result


def _moved(hashes: Hashes, before: _Period, after: _Period) -> float:
    """The share of keys of which a node gets rows it did not get before."""
    moved = before.owners != after.owners
    for place in np.flatnonzero(np.isin(hashes, np.array([*before.hot, *after.hot], np.uint64))):
        key = int(hashes[place])
        now = after.hot.get(key, frozenset([int(after.owners[place])]))
        moved[place] = not now <= before.hot.get(key, frozenset([int(before.owners[place])]))
    return float(moved.mean())


def _hot_nodes(table: RouteTable) -> dict[int, frozenset[int]]:
    return {key.hash: frozenset(key.nodes) for key in table.hot}


def _pairs(drawn: Ints, routes: Ints) -> Ints:
    return np.unique(drawn * 64 + routes)


def _node_counts(rng: np.random.Generator, changes: int) -> Ints:
    trend = 4 + 28 * np.sin(np.linspace(0, np.pi, changes + 1))
    return np.clip(np.rint(trend + rng.uniform(-2, 2, changes + 1)), 4, 32).astype(np.int64)


def _zipf_rows(rng: np.random.Generator, exponent: float, rows: int) -> Ints:
    shares = np.arange(1, KEYS + 1) ** -exponent
    return np.searchsorted(np.cumsum(shares / shares.sum())[:-1], rng.random(rows), side="right")


def _counted(drawn: Ints, hashes: Hashes, rng: np.random.Generator) -> FrequentKeys:
    counted = FrequentKeys()
    counted.add(hashes[drawn], [drawn], rng, sampled_share=COUNTED_SHARE)
    return counted
