"""What frequency-aware routing and rate-aware panes cost a row (claim R4), on Arrow batches.

A splitter's work on a row is to find its node and to send it there. "route and send" gathers the
rows of each node and writes them as an Arrow stream for it; "route only" leaves that out.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.model.observation import Ints
from penstock.routing.advice import load_ratio, node_loads
from penstock.routing.baselines import plain_hash_routes
from penstock.routing.decision import decide_routes
from penstock.routing.frequent_keys import FrequentKeys
from penstock.routing.hashing import Column, key_hashes
from penstock.routing.panes import (
    new_history,
    pane_numbers,
    pane_routes,
    rate_aware_routes,
)
from penstock.routing.ring import ring_of
from penstock.routing.route_table import RouteTable
from penstock.routing.splitting import SplitRule

ROWS, KEYS, NODES, TOP_K = 100_000, 16_000, 16, 100
PANE_ROWS = np.array([1, 1, 1, 1, 5, 1, 1, 1, 1, 1]) * 20_000  # ten seconds of R1, one a jump
SENT, ROUTED = "route and send", "route only"
_PANE_US = 1_000_000
_MOST_SLICES = 1_000
_UNTIMED_TURNS = 3  # the first ones fill caches


@dataclass(frozen=True)
class Overhead:
    """Nanoseconds for each row of the baseline and of ours, and the load ratios they lead to."""

    what: str
    plain_ns: float
    ours_ns: float
    plain_ratio: float
    ours_ratio: float

    @property
    def extra(self) -> float:
        """What ours costs above the baseline, as a share of it."""
        return self.ours_ns / self.plain_ns - 1


def frequency_aware_overheads(
    exponent: float, kind: str, seed: int, repeats: int
) -> tuple[Overhead, Overhead]:
    """Splitting the K most frequent keys, with counting for the next table, over plain hashing."""
    rng = np.random.default_rng(seed)
    batch = position_reports(exponent, kind, rng)
    keys = batch.column("key")
    table = _table_for(keys, rng)
    return _compared(
        batch,
        lambda: plain_hash_routes(key_hashes(keys), NODES),
        lambda: _counted_routes(table, keys, rng),
        repeats,
    )


def rate_aware_overheads(seed: int, repeats: int) -> tuple[Overhead, Overhead]:
    """Rate-aware panes over panes dealt round robin, on ten panes of which one is a jump."""
    batch = timed_batch(None, 4 * NODES, np.random.default_rng(seed))
    steady = np.repeat(np.arange(4 * NODES), 20_000)
    history = rate_aware_routes(steady, new_history(NODES))[1]
    ticks = batch.column("time").to_numpy()

    def ours() -> Ints:
        return rate_aware_routes(pane_numbers(ticks, _PANE_US), history)[0]

    return _compared(
        batch, lambda: pane_routes(pane_numbers(ticks, _PANE_US), NODES), ours, repeats
    )


def paired_ns(works: list[Callable[[], Any]], rows: int, repeats: int) -> list[float]:
    """Least nanoseconds a row of each work, taken in turn: what else runs here only adds."""
    times: list[list[float]] = [[] for _ in works]
    for turn in range(repeats + _UNTIMED_TURNS):
        for number, work in enumerate(works):
            start = time.perf_counter()
            work()
            if turn >= _UNTIMED_TURNS:
                times[number].append(time.perf_counter() - start)
    return [min(one) / rows * 1e9 for one in times]


def _compared(
    batch: "pa.RecordBatch", plain: Callable[[], Ints], ours: Callable[[], Ints], repeats: int
) -> tuple[Overhead, Overhead]:
    ratios = [load_ratio(node_loads(routes(), NODES)) for routes in (plain, ours)]
    rows = batch.num_rows
    sent = paired_ns([lambda: _sent(batch, plain()), lambda: _sent(batch, ours())], rows, repeats)
    routed = paired_ns([plain, ours], rows, repeats)
    return (
        Overhead(SENT, sent[0], sent[1], ratios[0], ratios[1]),
        Overhead(ROUTED, routed[0], routed[1], ratios[0], ratios[1]),
    )


def _counted_routes(table: RouteTable, keys: Column, rng: np.random.Generator) -> Ints:
    """Routes of a batch, with its keys counted for the next table and packed for the driver."""
    hashes = key_hashes(keys)
    counted = FrequentKeys()
    counted.add(hashes, [keys], rng)
    counted.to_bytes()
    return table.routes_of(hashes)


def _table_for(keys: Column, rng: np.random.Generator) -> RouteTable:
    counted = FrequentKeys()
    counted.add(key_hashes(keys), [keys], rng, sampled_share=1.0)
    return decide_routes(counted, ring_of(NODES), SplitRule(top_k=TOP_K)).plan


def _sent(batch: "pa.RecordBatch", routes: Ints) -> list["pa.Buffer"]:
    """The rows of each node, as the bytes of an Arrow stream."""
    sinks = [pa.BufferOutputStream() for _ in range(NODES)]
    writers = [pa.ipc.new_stream(sink, batch.schema) for sink in sinks]
    starts = np.append(0, np.flatnonzero(routes[1:] != routes[:-1]) + 1)
    if len(starts) > _MOST_SLICES:  # rows of a node are not together
        narrow = routes.astype(np.uint16)
        batch = batch.take(pa.array(np.argsort(narrow, kind="stable")))
        sizes = np.bincount(narrow, minlength=NODES)
        starts, routes = np.cumsum(sizes) - sizes, np.repeat(np.arange(NODES), sizes)
    ends = np.append(starts[1:], len(routes))
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if end > start:
            writers[int(routes[start])].write_batch(batch.slice(start, end - start))
    for writer in writers:
        writer.close()
    return [sink.getvalue() for sink in sinks]


def position_reports(exponent: float, kind: str, rng: np.random.Generator) -> "pa.RecordBatch":
    """Position reports with keys of a Zipf distribution in random order."""
    shares = np.arange(1, KEYS + 1) ** -exponent
    keys = rng.choice(rng.permutation(KEYS), ROWS, p=shares / shares.sum())
    column = pa.array(keys if kind == "int64" else [f"area-{key:05d}" for key in keys.tolist()])
    return _reports(column, "key", rng)


def timed_batch(
    pane_rows: Ints | None, first_pane: int, rng: np.random.Generator
) -> "pa.RecordBatch":
    """Reports of panes of these sizes; None: those of R1's stream."""
    sizes = PANE_ROWS if pane_rows is None else pane_rows
    pane = first_pane + np.repeat(np.arange(len(sizes)), sizes)
    ticks = pane * _PANE_US + rng.integers(0, _PANE_US, len(pane))
    return _reports(pa.array(ticks), "time", rng)


def _reports(column: "pa.Array", name: str, rng: np.random.Generator) -> "pa.RecordBatch":
    values = [pa.array(rng.random(len(column))) for _ in range(3)]
    vehicle = pa.array(rng.integers(0, 10**6, len(column)))
    return pa.record_batch([column, vehicle, *values], [name, "vehicle", "long", "lat", "speed"])
