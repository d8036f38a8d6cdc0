"""What routing costs a row, on Arrow batches, and what it buys.

Run: python -m benchmarks routing
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from experiments.routing.trials.greedy import greedy_schedule
from experiments.routing.trials.overhead import (
    NODES,
    PANE_ROWS,
    ROWS,
    TOP_K,
    Overhead,
    frequency_aware_overheads,
    paired_ns,
    rate_aware_overheads,
)
from penstock.routing.cost_sketch import empty_cost_sketch
from penstock.routing.hashing import key_hashes
from penstock.routing.osg import osg_batch_routes

REPEATS = 60


def run() -> Iterator[dict[str, Any]]:
    """One row for each comparison; a ratio above 1 says ours is better."""
    for exponent in (1.0, 1.5):
        for kind in ("int64", "text"):
            for found in frequency_aware_overheads(exponent, kind, seed=0, repeats=REPEATS):
                yield _row(
                    f"routing: frequency-aware, {kind} keys, Zipf {exponent}, {found.what}", found,
                    f"plain hashing; {ROWS} rows, 16K keys, {NODES} nodes, K={TOP_K}, counting "
                    f"included; load ratio {found.plain_ratio:.0%} -> {found.ours_ratio:.0%}",
                )  # fmt: skip
    for found in rate_aware_overheads(seed=0, repeats=REPEATS):
        yield _row(
            f"routing: rate-aware panes, {found.what}", found,
            f"panes round robin; {PANE_ROWS.sum()} rows of 10 panes, one a jump, {NODES} nodes; "
            f"load ratio {found.plain_ratio:.0%} -> {found.ours_ratio:.0%}",
        )  # fmt: skip
    yield _osg_batch()


def _osg_batch() -> dict[str, Any]:
    values = np.random.default_rng(2).integers(0, 1_000, ROWS)
    costs = np.linspace(0.01, 0.09, 1_000)
    hashes = key_hashes(values)
    sketch = empty_cost_sketch().learn(hashes, costs[values])
    free = np.zeros(NODES)
    online_ns, batch_ns = paired_ns(
        [
            lambda: greedy_schedule(sketch.estimate_s(hashes), free).routes,
            lambda: osg_batch_routes(hashes, sketch, free).routes,
        ],
        ROWS,
        repeats=8,
    )
    found = Overhead("route only", online_ns, batch_ns, 0.0, 0.0)
    setting = f"OSG row by row; {ROWS} rows, 1000 values, {NODES} tasks, estimates included"
    return _row("routing: OSG for a whole batch", found, setting)


def _row(name: str, found: Overhead, conditions: str) -> dict[str, Any]:
    return {
        "name": name,
        "baseline": found.plain_ns,
        "ours": found.ours_ns,
        "unit": "ns/row",
        "ratio": found.plain_ns / found.ours_ns,
        "conditions": f"{conditions}; ours costs {found.extra:+.1%}",
    }
