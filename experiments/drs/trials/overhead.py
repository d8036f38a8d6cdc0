"""D5: how long one decision takes (Table II), measured on this machine."""

import time
from dataclasses import dataclass

from experiments.drs.workloads.applications import MEAN_FRAMES_PER_S, VLD_LIGHT_S, vld
from penstock.scaling.models.jackson import MMK
from penstock.workloads.profiles import constant

PAPER_MS = {12: 0.083, 24: 0.158, 48: 0.323, 96: 0.665, 192: 1.250}
ROUNDS = 5  # the fastest of so many means: others share the machine


@dataclass(frozen=True)
class Timing:
    """Milliseconds of one AssignProcessors."""

    k_max: int
    ours_ms: float
    paper_ms: float


def timings(repeats: int) -> list[Timing]:
    """AssignProcessors for VLD with fixed rates, as `benchmarks/drs.py` runs it."""
    net = vld(VLD_LIGHT_S, constant(MEAN_FRAMES_PER_S), 60.0).network()
    found = []
    for k_max, paper_ms in PAPER_MS.items():
        means_ms = []
        for _ in range(ROUNDS):
            began_s = time.perf_counter()
            for _ in range(repeats):
                MMK.assign(net, k_max)
            means_ms.append(1e3 * (time.perf_counter() - began_s) / repeats)
        found.append(Timing(k_max, min(means_ms), paper_ms))
    return found
