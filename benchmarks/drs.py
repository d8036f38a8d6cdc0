"""How long a DRS decision takes, against the algorithms of Fu et al. 2017 as printed.

Run: python benchmarks/drs.py
"""

import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from penstock.model.decision import Limits, ScalingPlan
from penstock.model.observation import (
    ComponentObservation,
    Flows,
    LatencyObservation,
    Observation,
)
from penstock.scaling.models.erlang import least_processors
from penstock.scaling.models.jackson import MMK
from penstock.scaling.models.network import Network, network
from penstock.scaling.policies.drs import Drs
from penstock.scaling.policies.policy import ScalingContext

PAPER_MS = {12: 0.083, 24: 0.158, 48: 0.323, 96: 0.665, 192: 1.250}  # Table II, their machine


def run() -> Iterator[dict[str, Any]]:
    """One row for each comparison; a ratio above 1 says ours is better."""
    for processors in PAPER_MS:
        yield _assign_small(processors)
    yield _minimum_small()
    yield _assign_large()
    yield _minimum_large()
    yield _decide(3, 1.0)
    yield _decide(1000, 20.0)
    yield _decide_in_batches(5, 10.0)


def _small() -> Network:
    """Three operators in a chain, loads 2.9, 4.3 and 0.07."""
    return network(
        ("extract", "match", "aggregate"),
        np.array([5.0, 50.0, 5.0]),
        np.array([1.7, 11.6, 70.0]),
        5.0,
    )


def _large() -> Network:
    """1,000 operators with loads of 1 to 100, half of 100,000 processors in all."""
    rng = np.random.default_rng(11)
    rates = rng.uniform(1.0, 100.0, 1000)
    return network(
        tuple(f"op{i}" for i in range(1000)), rates, rates / rng.uniform(1.0, 99.0, 1000), 50.0
    )


def _assign_small(processors: int) -> dict[str, Any]:
    net = _small()
    ours, found = _best_of(lambda: MMK.assign(net, processors), 300)
    naive, split = _best_of(lambda: _naive_assign(net, processors), 20)
    if not math.isclose(MMK.latency_s(net, np.array(split)), found.latency_s, rel_tol=1e-9):
        raise RuntimeError("the naive form and ours disagree on the latency")
    conditions = (
        f"3 operators, K_max = {processors}; baseline: Algorithm 1 with every gain computed anew "
        f"from equations (2) and (3); the paper's own machine took {PAPER_MS[processors]} ms"
    )
    return _row(f"drs_assign_{processors}", naive * 1e3, ours * 1e3, "ms", conditions)


def _minimum_small() -> dict[str, Any]:
    net = _small()
    bound = net.service_time_s * 1.0001
    ours, found = _best_of(lambda: MMK.minimum(net, bound, 192), 300)
    naive, split = _best_of(lambda: _naive_minimum(net, bound), 5)
    if sum(split) != found.processors:
        raise RuntimeError("the naive form and ours disagree on the number of processors")
    conditions = (
        f"3 operators, T_max 0.01% above the service time, {found.processors} processors found; "
        "baseline: Algorithm 2, which calls Algorithm 1 for each processor added"
    )
    return _row("drs_minimum_small", naive * 1e3, ours * 1e3, "ms", conditions)


def _assign_large() -> dict[str, Any]:
    net = _large()
    ours, found = _best_of(lambda: MMK.assign(net, 100_000), 5)
    least = sum(least_processors(load) for load in net.loads.tolist())
    steps = found.processors - least
    one_step = _naive_step_s(net)
    conditions = (
        f"1,000 operators, 100,000 processors, load {net.loads.sum():.0f}; baseline: one step of "
        f"Algorithm 1 measured, times its {steps} steps"
    )
    return _row("drs_assign_1000_operators", one_step * steps, ours, "s", conditions)


def _minimum_large() -> dict[str, Any]:
    net = _large()
    bound = MMK.assign(net, 100_000).latency_s * 1.0001
    ours, found = _best_of(lambda: MMK.minimum(net, bound, 100_000), 5)
    assign, _ = _best_of(lambda: MMK.assign(net, found.processors), 5)
    conditions = (
        f"1,000 operators, {found.processors} processors found; baseline: one AssignProcessors of "
        f"ours times log2 K, the cost allowed"
    )
    allowed = assign * math.log2(found.processors)
    return _row("drs_minimum_1000_operators", allowed, ours, "s", conditions)


def _decide(operators: int, allowed_ms: float) -> dict[str, Any]:
    context, policy = window_of(operators, 60), Drs()
    ours, _ = _best_of(lambda: policy.decide(context), 30 if operators > 100 else 300)
    conditions = (
        f"a whole decision over 60 observations of {operators} operators in a chain, from the "
        "window to plan and reasons, with the model corrected by 30 periods; baseline: the time "
        "allowed. A window is seen again each period with one observation more, so what each "
        "observation holds is read once"
    )
    return _row(f"drs_decide_{operators}", allowed_ms, ours * 1e3, "ms", conditions)


def _decide_in_batches(operators: int, allowed_ms: float) -> dict[str, Any]:
    """As on Spark apart, where the model `hops` is taken."""
    context, policy = window_of(operators, 60), Drs()
    seen = tuple(
        replace(
            one,
            components=tuple(replace(c, batch_s=0.7, batch_rows=4.0) for c in one.components),
        )
        for one in context.window
    )
    context = replace(context, window=seen)
    ours, _ = _best_of(lambda: policy.decide(context), 100)
    conditions = (
        f"the same over {operators} components that work in batches, at most "
        f"{context.limits.max_processors} processors; baseline: the time allowed"
    )
    return _row(f"drs_decide_in_batches_{operators}", allowed_ms, ours * 1e3, "ms", conditions)


def window_of(operators: int, periods: int) -> ScalingContext:
    """Operators that keep two of their four processors busy."""
    rng = np.random.default_rng(1)
    names = [f"op{i:04}" for i in range(operators)]
    edges, seen = tuple(pairwise(names)), []
    for at in range(periods):
        rate = 10.0 * (1 + 0.01 * float(rng.standard_normal()))
        components = tuple(
            ComponentObservation(name, (name,), rate, 0.2, 4, rate, served_rate_per_s=rate)
            for name in names
        )
        seen.append(
            Observation(
                5.0 * at, 5.0, rate, 0.0, components=components,
                latency=LatencyObservation(50, 1.0, 1.2, 2.0, 1.0),
                flows=Flows(edges, (rate,) * len(edges)),
            )
        )  # fmt: skip
    limits = Limits(operators, 100 * operators, 1.0 + 0.24 * operators)
    plan = ScalingPlan(dict.fromkeys(names, 4), 4 * operators)
    return ScalingContext(tuple(seen), plan, limits, edges, "space")


def _naive_waiting(rate: float, mu: float, k: int) -> float:
    """Equations (2) and (3), term by term."""
    rho = rate / (k * mu)
    term, total = 1.0, 0.0
    for n in range(k):
        total += term
        term *= k * rho / (n + 1)
    return term / (total + term / (1 - rho)) / ((1 - rho) ** 2 * mu * k)


def _naive_gains(net: Network, split: list[int]) -> list[float]:
    rows = zip(net.arrival_rate_per_s.tolist(), net.service_rate_per_s.tolist(), split, strict=True)
    return [
        rate * (_naive_waiting(rate, mu, k) - _naive_waiting(rate, mu, k + 1))
        for rate, mu, k in rows
    ]


def _naive_assign(net: Network, processors: int) -> list[int]:
    """Algorithm 1, stopped at K_max."""
    split = [least_processors(load) for load in net.loads.tolist()]
    while sum(split) < processors:
        gains = _naive_gains(net, split)
        split[gains.index(max(gains))] += 1
    return split


def _naive_minimum(net: Network, bound_s: float) -> list[int]:
    """Algorithm 2."""
    split = [least_processors(load) for load in net.loads.tolist()]
    processors = sum(split)
    while MMK.latency_s(net, np.array(split)) > bound_s:
        processors += 1
        split = _naive_assign(net, processors)
    return split


def _naive_step_s(net: Network) -> float:
    split = [least_processors(load) for load in net.loads.tolist()]
    took, _ = _best_of(lambda: _naive_gains(net, split), 5)
    return took


def _best_of(work: Callable[[], Any], times: int) -> tuple[float, Any]:
    best, result = math.inf, None
    for _ in range(times):
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
    return best, result


def _row(name: str, baseline: float, ours: float, unit: str, conditions: str) -> dict[str, Any]:
    return {
        "name": name, "baseline": baseline, "ours": ours, "unit": unit, "ratio": baseline / ours,
        "conditions": conditions,
    }  # fmt: skip


if __name__ == "__main__":
    for row in run():
        print(json.dumps(row))
