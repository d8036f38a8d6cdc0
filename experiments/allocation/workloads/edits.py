"""The shape of real job 1 (top-k of edits) under a load that moves.

Three operators of 100 key groups on 20 nodes. The first (geographic hash) is even. The load of the
second follows the edits of articles that hash into its key groups: Zipf-like popularity, a share of
which is dealt anew each period, with bursts; the third follows the second's results, which are
keyed anew. Exponent, number of articles, share and bursts are chosen once, here.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from penstock.allocation.problem import Floats

NODES, GROUPS, OPERATORS = 20, 100, 3
MEAN_LOAD = 50.0
ARTICLES = 20_000
ZIPF_EXPONENT = 0.6
DEALT_ANEW = 0.05  # of the articles, each period
BURST_CHANCE = 0.3  # that one key group's articles are edited three times as much
MERGE_SHARE = 0.1  # of a key group's load, on average, to merge the halves that PoTC makes


@dataclass(frozen=True)
class Period:
    """Loads of all key groups in one period, and what merging them would cost."""

    load: Floats
    merge_load: Floats


def periods(count: int, seed: int) -> Iterator[Period]:
    """Loads of the 300 key groups, period after period."""
    rng = np.random.default_rng(seed)
    popularity = rng.permutation(np.arange(1, ARTICLES + 1) ** -ZIPF_EXPONENT)
    group_of = rng.integers(GROUPS, size=ARTICLES)
    result_of = rng.integers(GROUPS, size=ARTICLES)
    for _ in range(count):
        dealt = rng.choice(ARTICLES, size=int(DEALT_ANEW * ARTICLES), replace=False)
        popularity[dealt] = rng.permutation(popularity[dealt])
        edits = popularity.copy()
        if rng.random() < BURST_CHANCE:
            edits[group_of == rng.integers(GROUPS)] *= 3.0
        even = np.ones(GROUPS) * (1 + rng.uniform(-0.02, 0.02, GROUPS))
        by_article = np.bincount(group_of, weights=edits, minlength=GROUPS)
        by_result = np.bincount(result_of, weights=edits, minlength=GROUPS)
        shares = np.concatenate([part / part.sum() for part in (even, by_article, by_result)])
        load = MEAN_LOAD * NODES * shares / OPERATORS
        yield Period(load, load * MERGE_SHARE * rng.exponential(1.0, len(load)))
