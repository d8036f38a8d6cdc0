"""Measured sojourn times of allocations that stay as they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from experiments.drs.workloads.applications import (
    HOP_S,
    K_MAX,
    MEAN_FRAMES_PER_S,
    VLD_HEAVY_S,
    Allocation,
    Application,
    fpd,
    frame_rates,
    nearest,
    vld,
    written,
)
from penstock.model.observation import Floats
from penstock.scaling.models.jackson import MMK
from penstock.scaling.policies.static import Static
from penstock.sim.run import simulate
from penstock.sim.tally import Results
from penstock.workloads.profiles import constant

OTHERS = 5  # nearest allocations beside the recommended one


@dataclass(frozen=True)
class Sizes:
    """Simulated seconds of one run, and what of it is not counted.

    VLD runs longer than the ten minutes of the paper: at this load, means over ten minutes differ
    more between seeds than between neighbouring allocations.
    """

    vld_s: float = 6000.0
    fpd_s: float = 60.0
    warm_up_share: float = 0.1


QUICK = Sizes(vld_s=200.0, fpd_s=6.0)


@dataclass(frozen=True)
class Measured:
    """One allocation: what the model expects, and what was measured, a value for each seed."""

    allocation: Allocation
    estimate_s: float
    mean_s: tuple[float, ...]
    deviation_s: tuple[float, ...]

    @property
    def name(self) -> str:
        return written(self.allocation)

    @property
    def mean(self) -> float:
        return float(np.mean(self.mean_s))

    @property
    def deviation(self) -> float:
        return float(np.mean(self.deviation_s))


@cache
def measured(app: str, sizes: Sizes, seeds: tuple[int, ...]) -> tuple[Measured, ...]:
    """The recommended allocation of an application first, then its nearest; the same for D1, D2."""
    applications = [application(app, sizes, seed) for seed in seeds]
    net = application(app, sizes, None).network()  # told the long-run mean
    recommended = tuple(map(int, MMK.assign(net, K_MAX).parallelism))
    first, second, third = recommended
    found = []
    for allocation in nearest((first, second, third), OTHERS):
        runs = [
            sojourns_s(one, allocation, seed, sizes.warm_up_share)
            for one, seed in zip(applications, seeds, strict=True)
        ]
        found.append(
            Measured(
                allocation,
                MMK.latency_s(net, np.array(allocation)),
                tuple(float(run.mean()) for run in runs),
                tuple(float(run.std()) for run in runs),
            )
        )
    return tuple(found)


def steady_share(sizes: Sizes, seed: int) -> float:
    """Estimated over measured for VLD if frames came as the model thinks: Poisson, one rate."""
    app = vld(VLD_HEAVY_S, constant(MEAN_FRAMES_PER_S), sizes.vld_s, HOP_S, arrivals="poisson")
    net = app.network()
    best = MMK.assign(net, K_MAX)
    runs = sojourns_s(app, best.parallelism.tolist(), seed, sizes.warm_up_share)
    return best.latency_s / float(runs.mean())


def application(app: str, sizes: Sizes, seed: int | None) -> Application:
    """FPD, or VLD under heavy load: with the frame rates of a seed, or None for their mean."""
    if app == "FPD":
        return fpd(sizes.fpd_s, HOP_S)
    if seed is None:
        return vld(VLD_HEAVY_S, constant(MEAN_FRAMES_PER_S), sizes.vld_s, HOP_S)
    return vld(VLD_HEAVY_S, frame_rates(sizes.vld_s, seed), sizes.vld_s, HOP_S)


def sojourns_s(app: Application, allocation: Sequence[int], seed: int, warm_up: float) -> Floats:
    """Time until all that derives from a tuple is done, of those that came after the warm-up."""
    scenario = app.allocated(allocation, seed)
    return trees_s(simulate(scenario, Static()).results, warm_up * scenario.duration_s)


def trees_s(results: Results, since_s: float) -> Floats:
    """The last result of each external tuple less its arrival; tuples are known by when they came.

    Results carry the arrival of their tuple, and no two tuples arrive at the same moment.
    """
    origin_s = results.at_s - results.latency_s
    order = np.argsort(origin_s, kind="stable")
    origin_s, latency_s = origin_s[order], results.latency_s[order]
    # The subtraction rounds: what is nearer than a nanosecond is one tuple.
    first = np.flatnonzero(np.concatenate(([True], np.diff(origin_s) > 1e-9)))
    longest: Floats = np.maximum.reduceat(latency_s, first)
    return longest[origin_s[first] >= since_s]
