"""What one decision of each part costs as that grows by tens, with the power fitted to it.

`scale` has the loop over executors and key groups; these parts are not in it. Seconds are of this
process (`time.process_time`), so that other programs count for nothing; the least of some turns.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from benchmarks.admission import problem_of
from benchmarks.drs import window_of
from benchmarks.fusion_planning import graph_of
from benchmarks.sharing import topologies
from penstock.admission.decide import decide_admission
from penstock.admission.registry import STRATEGIES
from penstock.fusion.costs import Costs, FusionLimits
from penstock.fusion.greedy import greedy
from penstock.scaling.policies.drs import Drs
from penstock.sharing.arbiter import Cluster, divide
from penstock.sharing.batches import claims_of

TURNS = 3
LIMIT_S = 1.0
Decision = Callable[[], object]


def streams(count: int) -> Decision:
    """Admission over so many streams in lanes of a thousand."""
    problem = problem_of(count, 1_000, seed=0)
    return lambda: decide_admission(problem, STRATEGIES["drf-m"])


def lanes(count: int) -> Decision:
    """Admission over 100,000 streams in so many lanes."""
    problem = problem_of(100_000, 100_000 // count, seed=0)
    return lambda: decide_admission(problem, STRATEGIES["drf-m"])


def operators_scaled(count: int) -> Decision:
    """DRS over a chain of so many operators that scale apart, and 60 periods."""
    context, policy = window_of(count, 60), Drs()
    return lambda: policy.decide(context)


def operators_fused(count: int) -> Decision:
    """A plan of components for so many operators, each with three streams."""
    graph = graph_of(count)
    return lambda: greedy(Costs(graph), FusionLimits())


def topologies_shared(count: int) -> Decision:
    """A cluster with nine tenths of what so many topologies need, divided among them."""
    some = topologies(count)
    asked = claims_of(some, 10**6)
    needed = int((asked.least + np.where(asked.keepable, asked.need, 0)).sum())
    processors = round(0.9 * needed)
    return lambda: divide(claims_of(some, processors), Cluster(processors))


PARTS: Mapping[str, tuple[Callable[[int], Decision], tuple[int, ...]]] = {
    "streams": (streams, (10_000, 100_000, 1_000_000)),
    "lanes": (lanes, (100, 1_000, 10_000)),
    "operators_scaled": (operators_scaled, (10, 100, 1_000)),
    "operators_fused": (operators_fused, (10, 100, 1_000)),
    "topologies": (topologies_shared, (10, 100, 1_000)),
}


def cpu_s(decision: Decision) -> float:
    """Seconds of a core, of the best turn after one that fills caches."""
    decision()
    taken = []
    for _ in range(TURNS):
        began_s = time.process_time()
        decision()
        taken.append(time.process_time() - began_s)
    return min(taken)


def run() -> Iterator[dict[str, object]]:
    """A row for each part: its greatest size, all sizes, and how it grows."""
    for name, (made, sizes) in PARTS.items():
        print(f"scale_parts: {name} ...", file=sys.stderr, flush=True)
        taken_s = [cpu_s(made(size)) for size in sizes]
        power = float(np.polyfit(np.log(sizes), np.log(np.maximum(taken_s, 1e-6)), 1)[0])
        seen = ", ".join(f"{n}: {s * 1e3:.3g} ms" for n, s in zip(sizes, taken_s, strict=True))
        last = float(np.log10(taken_s[-1] / max(taken_s[-2], 1e-6)))
        yield {
            "name": f"scale_parts/{name}",
            "baseline": LIMIT_S,
            "ours": round(taken_s[-1], 4),
            "unit": "s of a core",
            "ratio": round(LIMIT_S / taken_s[-1], 2),
            "conditions": (
                f"{(made.__doc__ or '').strip()} {seen}; grows with the {power:.2f}th power, in "
                f"the last step with the {last:.2f}th"
            ),
        }
