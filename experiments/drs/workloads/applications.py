"""The two applications of Fu et al. 2017, s. V-A, as scenarios, processors shared in space.

Video logo detection (VLD) is a chain: extract features, match them, aggregate. Frequent pattern
detection (FPD) generates candidates of each tweet that enters or leaves the window, counts them in
a detector that notifies itself through a loop, and reports. Service times are not printed; they
are the centres of the regions in which the model recommends the allocations that are
(docs/reproduce.md), so what is tested is whether these allocations are the best when measured.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from penstock.scaling.models.network import Network, network
from penstock.scaling.models.traffic import arrival_rates
from penstock.sim.scenario import ClusterSpec, OperatorSpec, Scenario, SourceSpec, Upstream
from penstock.sim.service import ServiceTime
from penstock.workloads.profiles import RateProfile, constant, steps

K_MAX = 22
HOP_S = 0.010  # one transfer between operators, for both applications
FRAME_RATES = (1.0, 25.0)  # uniform, drawn anew each second
MEAN_FRAMES_PER_S = 13.0
TWEETS_PER_S = 320.0  # that enter the window; as many leave it
CANDIDATES = 2.0  # itemsets of a tweet
NOTIFIED = 0.05  # share of candidates whose change comes back to the detector
REPORTED = 0.10

# Sum of the loads over K_max is 0.8: at half of it, as Fig. 9 suggests, all splits are alike.
VLD_HEAVY_S = (0.6373, 0.7115, 0.005)
# What makes the model pick 4:6:1 at 12 and 3:3:1 at 5 and 6 frames a second (Fig. 9 and 10), where
# 3:5:1 still keeps up with 12 (Fig. 9b).
VLD_LIGHT_S = (0.24, 0.365, 0.005)
FPD_S = (0.00729, 0.00810, 0.0150)

Allocation = tuple[int, int, int]


def written(allocation: Sequence[int]) -> str:
    """As the paper prints it.

    >>> written((10, 11, 1))
    '10:11:1'
    """
    return ":".join(map(str, allocation))


@dataclass(frozen=True)
class Application:
    """A scenario whose operators of interest, in order, have processors to be allocated."""

    name: str
    scenario: Scenario
    operators: tuple[str, ...]
    external_rate_per_s: float

    def allocated(self, allocation: Sequence[int], seed: int, spare: int = 0) -> Scenario:
        """The scenario with these processors and a seed; `spare` more may be asked for."""
        given = dict(zip(self.operators, allocation, strict=True))
        operators = tuple(
            replace(operator, processors=given.get(operator.name, operator.processors))
            for operator in self.scenario.operators
        )
        total = sum(operator.processors for operator in operators)
        cluster = replace(
            self.scenario.cluster, executors=total, min_executors=min(total, len(operators)),
            max_executors=total + spare,
        )  # fmt: skip
        return replace(self.scenario, operators=operators, cluster=cluster, seed=seed)

    def network(self) -> Network:
        """What a model is told: rates by the traffic equations, service rates, no transfers."""
        specs = {operator.name: operator for operator in self.scenario.operators}
        external = dict.fromkeys(specs, 0.0)
        ratios = dict[tuple[str, str], float]()
        sources = {s.name: _mean_rate_per_s(s.profile) for s in self.scenario.sources}
        for spec in specs.values():
            for upstream in spec.upstreams:
                if upstream.name in sources:
                    external[spec.name] += sources[upstream.name] * upstream.share
                else:
                    emitted = specs[upstream.name].selectivity * upstream.share
                    ratios[upstream.name, spec.name] = emitted
        rates = arrival_rates(list(specs), external, ratios)
        return network(
            self.operators,
            np.array([rates[name] for name in self.operators]),
            np.array([1.0 / specs[name].service.mean_s for name in self.operators]),
            self.external_rate_per_s,
            service_scv=np.array([specs[name].service.variation for name in self.operators]),
        )


def vld(
    services_s: Sequence[float],
    profile: RateProfile,
    duration_s: float,
    hop_s: float = 0.0,
    bulk: int = 1,
    service_scvs: tuple[float, float] = (1.0, 1.0),
    arrivals: Literal["regular", "poisson"] = "regular",
) -> Application:
    """The chain of video logo detection; the features of a frame come in `bulk` tuples at once."""
    names = ("extract", "match", "aggregate")
    extract_s, match_s, aggregate_s = services_s
    operators = _connected("extract", (("frames", 1.0),), extract_s, hop_s, service_scvs[0])
    operators[-1] = replace(operators[-1], selectivity=float(bulk))
    operators += _connected("match", (("extract", 1.0),), match_s / bulk, hop_s, service_scvs[1])
    operators += _connected("aggregate", (("match", 1.0),), aggregate_s / bulk, hop_s)
    sources = (SourceSpec("frames", profile, arrivals),)
    return Application(
        "VLD",
        _scenario("vld", sources, operators, duration_s),
        names,
        _mean_rate_per_s(profile),
    )


def fpd(duration_s: float, hop_s: float = 0.0) -> Application:
    """Frequent pattern detection with the loop of its detector."""
    generate_s, detect_s, report_s = FPD_S
    tweets = tuple(SourceSpec(name, constant(TWEETS_PER_S)) for name in ("enter", "leave"))
    operators = _connected("generate", (("enter", 1.0), ("leave", 1.0)), generate_s, hop_s)
    operators[-1] = replace(operators[-1], selectivity=CANDIDATES)
    operators += _connected("detect", (("generate", 1.0), ("detect", NOTIFIED)), detect_s, hop_s)
    operators += _connected("report", (("detect", REPORTED),), report_s, hop_s)
    return Application(
        "FPD",
        _scenario("fpd", tweets, operators, duration_s),
        ("generate", "detect", "report"),
        2 * TWEETS_PER_S,
    )


def frame_rates(
    duration_s: float, seed: int, between: tuple[float, float] = FRAME_RATES
) -> RateProfile:
    """A frame rate drawn uniformly, anew every second."""
    rates = np.random.default_rng(seed).uniform(*between, math.ceil(duration_s))
    return steps([(1.0, rate) for rate in rates.tolist()])


def nearest(allocation: Allocation, others: int) -> list[Allocation]:
    """The allocation and the nearest of the same total by L1 distance; lower first on a tie."""
    total = sum(allocation)
    found = [
        (first, second, total - first - second)
        for first in range(1, total)
        for second in range(1, total - first)
    ]

    def distance(other: Allocation) -> tuple[int, Allocation]:
        return sum(abs(a - b) for a, b in zip(other, allocation, strict=True)), other

    return sorted(found, key=distance)[: others + 1]


def _connected(
    name: str,
    upstreams: Sequence[tuple[str, float]],
    mean_s: float,
    hop_s: float,
    scv: float = 1.0,
) -> list[OperatorSpec]:
    """An operator, behind a transfer if one takes time.

    A transfer has so many processors that nothing ever waits for it; the model is not told of it.
    """
    ups = tuple(Upstream(up, share) for up, share in upstreams)
    service = ServiceTime("gamma", mean_s, scv)
    if not hop_s:
        return [OperatorSpec(name, ups, service)]
    hop = OperatorSpec(f"to_{name}", ups, ServiceTime("exponential", hop_s), processors=100)
    return [hop, OperatorSpec(name, (Upstream(hop.name),), service)]


def _scenario(
    name: str, sources: tuple[SourceSpec, ...], operators: Sequence[OperatorSpec], duration_s: float
) -> Scenario:
    total = sum(operator.processors for operator in operators)
    return Scenario(
        name, duration_s, 1.0, sources, tuple(operators), ClusterSpec(total, total, total),
        "space", period_s=60.0, step_s=0.1, jobs_per_step=1_000,
    )  # fmt: skip


def _mean_rate_per_s(profile: RateProfile) -> float:
    if profile.duration_s == 0:
        return profile.rates_per_s[-1]
    return profile.rows / profile.duration_s
