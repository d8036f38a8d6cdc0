"""D5: how long one decision takes (Table II), in CPU time on this machine, which others share."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from experiments.drs.workloads.applications import MEAN_FRAMES_PER_S, VLD_LIGHT_S, vld
from penstock.model.decision import Limits, ScalingPlan
from penstock.scaling.models.jackson import MMK
from penstock.scaling.policies.drs import Drs
from penstock.scaling.policies.policy import ScalingContext
from penstock.scaling.policies.static import Static
from penstock.sim.run import simulate
from penstock.workloads.profiles import constant

PAPER_MS = {12: 0.083, 24: 0.158, 48: 0.323, 96: 0.665, 192: 1.250}
PERIODS = 60  # that a decision looks back on
ROUNDS = 5  # the fastest of so many means: others share the machine


@dataclass(frozen=True)
class Timing:
    """Milliseconds of one AssignProcessors."""

    k_max: int
    ours_ms: float
    paper_ms: float


def decision_ms(repeats: int) -> float:
    """A whole decision: from 60 observations of VLD to a plan with its reasons, model corrected."""
    application = vld(VLD_LIGHT_S, constant(MEAN_FRAMES_PER_S), PERIODS * 5.0)
    scenario = replace(application.allocated((4, 6, 1), 1), period_s=5.0)
    seen = simulate(scenario, Static()).observations[-PERIODS:]
    running = {one.name: one.parallelism for one in seen[-1].components}
    plan = ScalingPlan(running, sum(running.values()))
    context = ScalingContext(seen, plan, Limits(3, 22, 1.0), scenario.edges, "space")
    return _least_ms(lambda: Drs().decide(context), max(1, repeats // 20))


def measuring_ms(repeats: int) -> float:
    """To read one new observation into the columns that decisions go by."""
    application = vld(VLD_LIGHT_S, constant(MEAN_FRAMES_PER_S), 60.0)
    seen = simulate(application.allocated((4, 6, 1), 1), Static()).observations[-1]
    return _least_ms(lambda: replace(seen).columns, repeats)


def _least_ms(work: Callable[[], object], repeats: int) -> float:
    means_ms = []
    for _ in range(ROUNDS):
        began_s = time.process_time()
        for _ in range(repeats):
            work()
        means_ms.append(1e3 * (time.process_time() - began_s) / repeats)
    return min(means_ms)


def timings(repeats: int) -> list[Timing]:
    """AssignProcessors for VLD with fixed rates, as `benchmarks/drs.py` runs it."""
    net = vld(VLD_LIGHT_S, constant(MEAN_FRAMES_PER_S), 60.0).network()
    found = []
    for k_max, paper_ms in PAPER_MS.items():
        took_ms = _least_ms(partial(MMK.assign, net, k_max), repeats)
        found.append(Timing(k_max, took_ms, paper_ms))
    return found
