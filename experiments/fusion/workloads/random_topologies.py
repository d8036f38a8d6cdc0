"""The random topologies of Guo and Zhou 2017, s. 6.2, and what would be measured on them.

Where the paper is silent, the choice is made once, here, and named in docs/fusion.md.
"""

from dataclasses import dataclass

import numpy as np

from penstock.fusion.graph import (
    OperatorGraph,
    OperatorStatistics,
    StreamStatistics,
    operator_graph,
)
from penstock.model.observation import Floats, Ints

ATTRIBUTES = ("a1", "a2", "a3", "a4")
RATE_PER_S = 10_000.0
STATE_ROWS = 10_000.0
ZIPF_EXPONENT = 1.0
DRIFT = 0.05  # of the key groups change their rank each minute, unless told otherwise


@dataclass(frozen=True)
class RandomTopology:
    """A random graph with selectivities, and the rows per second of each stream it implies."""

    keys: tuple[tuple[str, ...], ...]
    edges: tuple[tuple[int, int], ...]
    edge_rate_per_s: Floats
    source_rate_per_s: Floats  # into each operator, from the source


def random_topology(
    rng: np.random.Generator, operators: int, degree: int, copied: bool = False
) -> RandomTopology:
    """Streams between random pairs, earlier to later; each emitted row goes to one downstream.

    Where rows are `copied` to every downstream, they grow with each step; the rates are then made
    smaller alike, until operators process as many rows in all as otherwise. The selectivity
    N(0.5, 1) is drawn anew until it is above zero, as less means nothing.
    """
    pairs = np.stack(np.triu_indices(operators, 1), axis=1)
    chosen = rng.choice(len(pairs), min(degree * operators, len(pairs)), replace=False)
    edges = pairs[np.sort(chosen)]
    selectivity = rng.normal(0.5, 1.0, operators)
    while (selectivity <= 0).any():
        again = selectivity <= 0
        selectivity[again] = rng.normal(0.5, 1.0, int(again.sum()))
    fan_out = np.bincount(edges[:, 0], minlength=operators)
    roots = np.bincount(edges[:, 1], minlength=operators) == 0
    source = np.where(roots, RATE_PER_S / roots.sum(), 0.0)
    edge_rate, processed = _rates(source, edges, selectivity / np.maximum(fan_out, 1))
    if copied:
        to_all, grown = _rates(source, edges, selectivity)
        edge_rate, source = to_all * processed / grown, source * processed / grown
    keys = [
        tuple(str(a) for a in rng.choice(ATTRIBUTES, 2, replace=False)) for _ in range(operators)
    ]
    return RandomTopology(tuple(keys), tuple(map(tuple, edges.tolist())), edge_rate, source)


def _rates(source: Floats, edges: Ints, forwarded: Floats) -> tuple[Floats, float]:
    """Of each edge, where operators send so much of their input over each, and what all process."""
    rate_in, edge_rate = source.copy(), np.zeros(len(edges))
    for number, (up, down) in enumerate(edges):  # sorted by upstream, so its input is complete
        edge_rate[number] = rate_in[up] * forwarded[up]
        rate_in[down] += edge_rate[number]
    return edge_rate, float(rate_in.sum())


def group_shares(
    rng: np.random.Generator, minutes: int, groups: int, skewed: bool, drift: float = DRIFT
) -> Floats:
    """The share of each key group in each minute: even, or Zipf with ranks that drift."""
    if not skewed:
        return np.full((minutes, groups), 1 / groups)
    weights = np.arange(1, groups + 1) ** -ZIPF_EXPONENT
    weights /= weights.sum()
    rank = rng.permutation(groups)
    shares = np.zeros((minutes, groups))
    for minute in range(minutes):
        shares[minute] = weights[rank]
        moved = rng.choice(groups, max(2, round(drift * groups)), replace=False)
        rank[moved] = rank[rng.permutation(moved)]
    return shares


def measured_graph(
    rng: np.random.Generator, topology: RandomTopology, shares: Floats, interval_min: int
) -> OperatorGraph:
    """Poisson counts of each stream and state per minute and key group, in adaptation windows."""
    minutes, groups = shares.shape
    windows = minutes // interval_min

    def counts(rate_per_s: float) -> Floats:
        rows: Floats = rng.poisson(rate_per_s * 60 * shares).astype(np.float64)
        in_windows = rows[: windows * interval_min].reshape(windows, interval_min, groups)
        return np.asarray(in_windows.sum(axis=1), dtype=np.float64)

    def name(position: int) -> str:
        return f"o{position}"

    operators = []
    for position, key in enumerate(topology.keys):
        state = rng.poisson(STATE_ROWS * shares).astype(np.float64)[
            interval_min - 1 :: interval_min
        ]
        operators.append(OperatorStatistics(name(position), key, state[:windows]))
    streams = [
        StreamStatistics(None, name(position), counts(rate))
        for position, rate in enumerate(topology.source_rate_per_s.tolist())
        if rate > 0
    ]
    streams += [
        StreamStatistics(name(up), name(down), counts(rate))
        for (up, down), rate in zip(topology.edges, topology.edge_rate_per_s.tolist(), strict=True)
    ]
    return operator_graph(operators, streams)
