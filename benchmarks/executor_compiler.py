"""Executors with the optimising compiler against those without, from their first batches on."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks._sessions import embedded_session
from benchmarks.fusion_on_spark import BATCH_S, ROAD, measure, road
from penstock.spark.cluster.embedded import compiler_options

RATE_PER_S = 6_000
BATCHES = 91  # the first is not counted; Spark remembers 100
SPANS = ((0, 10), (10, 40), (40, 90))
ROUNDS = 2
QUICK = {"spark.executor.extraJavaOptions": " ".join(compiler_options(slots=2, cores=1))}
OPTIMISING = dict.fromkeys(QUICK, "")


def run() -> Iterator[dict[str, Any]]:
    """Batch times by the age of the executor, linear road fused; each run has a new executor."""
    topology = road(RATE_PER_S, BATCHES)
    times_s: dict[bool, list[tuple[float, ...]]] = {True: [], False: []}
    for number in range(ROUNDS + 1):
        for quick in (True, False) if number % 2 else (False, True):
            with embedded_session(QUICK if quick else OPTIMISING) as session:
                times_s[quick].append(measure(topology, session, ROAD).batches_s)
    # The driver was new in the first round.
    plain, ours = (np.array(times_s[quick][1:]).mean(axis=0) for quick in (True, False))
    for first, last in SPANS:
        before_s, after_s = plain[first:last].mean(), ours[first:last].mean()
        yield {
            "name": f"executor compiler: batches {first + 1} to {last} of a new executor",
            "baseline": round(before_s, 3),
            "ours": round(after_s, 3),
            "unit": "s",
            "ratio": round(before_s / after_s, 3),
            "conditions": f"baseline: {' '.join(QUICK.values())}, in turns; linear road fused, "
            f"{RATE_PER_S:,} rows/s in batches of {BATCH_S} s, 1 executor, {ROUNDS} of each; "
            f"{after_s / before_s:.2f} of the baseline's time",
        }
