"""How long the arbiter takes to divide a cluster, and how many promises that keeps.

Run: python -m benchmarks sharing
"""

import itertools
import json
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from penstock.model.batch_overhead import BatchOverhead
from penstock.sharing.arbiter import Cluster, divide
from penstock.sharing.batches import Promised, claims_of
from penstock.sharing.claims import Claims
from penstock.sim.scenario import (
    BatchCost,
    ClusterSpec,
    OperatorSpec,
    Scenario,
    SourceSpec,
    Upstream,
)
from penstock.sim.service import ServiceTime
from penstock.sim.together import simulate_apart, simulate_together
from penstock.workloads.profiles import knots

REPEATS = 5
LIMIT_S = 0.2  # that a decision on 1,000 topologies may take


def run() -> Iterator[dict[str, Any]]:
    """One row for each comparison; a ratio above 1 says ours is better."""
    for part in (1.1, 0.9, 0.6, 0.3):
        yield _within_limit(part)
    yield _within_limit(0.9, load=40.0)
    yield _beside_one_by_one()
    yield _beside_every_division()
    yield _beside_equal_parts(chance=False)
    yield _beside_equal_parts(chance=True)


def topologies(count: int, seed: int = 7, load: float = 1.3) -> list[Promised]:
    """Loads that are unlike, bounds of 1 to 30 s, weights of 1 to 5."""
    rng = np.random.default_rng(seed)
    return [
        Promised(
            f"t{place}",
            float(rng.uniform(1, 30)),
            load * float(rng.lognormal(0, 0.9)),
            BatchOverhead(float(rng.uniform(0.1, 0.6)), float(rng.uniform(0, 0.02)) / load, 0.1),
            weight=float(rng.integers(1, 6)),
        )
        for place in range(count)
    ]


def _needed(asked: Claims) -> int:
    return int((asked.least + np.where(asked.keepable, asked.need, 0)).sum())


def _decided(some: list[Promised], processors: int) -> tuple[float, Any]:
    """The median time from loads to a division, and the division."""
    taken = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        plan = divide(claims_of(some, processors), Cluster(processors)).plan
        taken.append(time.perf_counter() - begun)
    return sorted(taken)[REPEATS // 2], plan


def _within_limit(part: float, load: float = 1.3) -> dict[str, Any]:
    some = topologies(1000, load=load)
    processors = round(part * _needed(claims_of(some, 10**6)))
    taken_s, plan = _decided(some, processors)
    return _row(
        f"1,000 topologies of {load:g} processors' load, {part:g} of what keeps all",
        LIMIT_S, taken_s, "s",
        f"baseline: the limit of {LIMIT_S} s; {processors} processors, {len(plan.kept)} kept",
    )  # fmt: skip


def _beside_one_by_one() -> dict[str, Any]:
    """One processor at a time to the topology with the most weight for what it still misses."""
    kept, naive = 0.0, 0.0
    for seed in range(20):
        some = topologies(12, seed, load=3.0)
        processors = round(0.6 * _needed(claims_of(some, 10**6)))
        asked = claims_of(some, processors)
        naive += one_by_one(asked, processors)
        kept += _weight(asked, divide(asked, Cluster(processors)).plan.kept)
    row = _row(
        "weight kept", naive, kept, "weight",
        "20 times 12 topologies with 0.6 of the processors that keep all; baseline: one processor "
        "at a time by weight for what is missing",
    )  # fmt: skip
    return {**row, "ratio": round(kept / naive, 3)}


def _weight(asked: Claims, names: tuple[str, ...]) -> float:
    weight = dict(zip(asked.names, asked.weight.tolist(), strict=True))
    return sum(weight[name] for name in names)


def one_by_one(asked: Claims, processors: int) -> float:
    """Weight kept by the naive division."""
    extra = np.zeros(len(asked.names), dtype=np.int64)
    for _ in range(processors - int(asked.least.sum())):
        late = asked.expected_s / asked.bound_s[:, None] > 1
        missing = np.where(asked.keepable, late.argmin(axis=1) - extra, 0)
        if not (missing > 0).any():
            break
        worth = np.where(missing > 0, asked.weight / np.maximum(1, missing), -1.0)
        extra[int(worth.argmax())] += 1
    return float(asked.weight[asked.lateness_at(extra) <= 1].sum())


def _beside_every_division() -> dict[str, Any]:
    """The same answer by trying every division of a few processors."""
    some = topologies(5, seed=3)
    processors = 14
    asked = claims_of(some, processors)
    room = processors - int(asked.least.sum())
    begun = time.perf_counter()
    best = 0.0
    steps = range(asked.expected_s.shape[1])
    for way in itertools.product(steps, repeat=len(some)):
        if sum(way) <= room:
            kept = asked.lateness_at(np.array(way)) <= 1
            best = max(best, float(asked.weight[kept].sum()))
    tried_s = time.perf_counter() - begun
    taken_s, plan = _decided(some, processors)
    same = _weight(asked, plan.kept) == best
    return _row(
        "time beside every division", tried_s, taken_s, "s",
        f"5 topologies, {processors} processors; baseline: every division is tried; the same "
        f"weight kept: {same}",
    )  # fmt: skip


def _beside_equal_parts(chance: bool) -> dict[str, Any]:
    """Five simulated topologies with loads out of phase, each from 0.3 to 3.3 processors.

    By chance, rows come one by one and differ in their cost: six a second vary much.
    """
    scenarios = [_waving(place / 5, chance) for place in range(5)]
    shared = simulate_together(scenarios, 25)
    fixed = simulate_apart(scenarios, 25)
    in_time = min(part.in_time_share for part in shared.parts)
    alone = min(part.in_time_share for part in fixed.parts)
    return _row(
        f"executor-seconds, five loads out of phase, {'by chance' if chance else 'evenly'}",
        fixed.executor_seconds,
        shared.executor_seconds, "executor-seconds",
        f"20 simulated minutes, 25 executors at most; the least share in time is {in_time:.4f}; "
        f"baseline: five executors for each throughout, {alone:.4f} in time",
    )  # fmt: skip


def _waving(phase: float, chance: bool) -> Scenario:
    moments_s = np.arange(0, 1201, 60)
    rates = 6 + 5 * np.cos(2 * np.pi * (moments_s / 1200 - phase))
    profile = knots(moments_s.tolist(), rates.tolist(), repeat=True)
    busy = 0.3 * rates[0]
    arrivals, service = ("poisson", "exponential") if chance else ("regular", "deterministic")
    return Scenario(
        f"phase {phase:g}", 1200.0, 5.0, (SourceSpec("rows", profile, arrivals),),
        (OperatorSpec("work", (Upstream("rows"),), ServiceTime(service, 0.3)),),
        ClusterSpec(int(np.ceil(busy)) + 1, 1, 8, startup_s=15.0), batch=BatchCost(0.3, 0.02),
        seed=3 + round(10 * phase),
    )  # fmt: skip


def _row(name: str, baseline: float, ours: float, unit: str, conditions: str) -> dict[str, Any]:
    return {
        "name": name, "baseline": round(baseline, 6), "ours": round(ours, 6), "unit": unit,
        "ratio": round(baseline / ours, 3), "conditions": conditions,
    }  # fmt: skip


if __name__ == "__main__":
    for one in run():
        print(json.dumps(one))
