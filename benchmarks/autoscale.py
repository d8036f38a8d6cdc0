"""How long an AUTOSCALE+ decision takes, against the paper's algorithm operator by operator.

Run: python benchmarks/autoscale.py
"""

import json
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from penstock.model.decision import Limits, ScalingPlan
from penstock.model.observation import ComponentObservation, Observation
from penstock.scaling.policies.autoscale_plus import AutoscalePlus
from penstock.scaling.policies.policy import ScalingContext
from penstock.scaling.windows import OperatorWindows, operator_windows

OPERATORS, MEASUREMENTS, PERIOD_S = 1000, 9, 10.0


def run() -> Iterator[dict[str, Any]]:
    """One row for each comparison; a ratio above 1 says ours is better."""
    context = _context()
    windows = operator_windows(context, MEASUREMENTS * PERIOD_S)
    if windows is None:
        raise RuntimeError("the window is empty")
    plus = AutoscalePlus()
    naive_s, rows = _best_of(lambda: _naive_inputs(windows), 3)
    ours_s, suggestions = _best_of(lambda: plus.suggest(windows), 30)
    if not np.allclose(rows, [suggestion.rows for suggestion in suggestions]):
        raise RuntimeError("the naive form and ours disagree on the estimates")
    naive = "baseline: three fits of each operator by sums over its window, in plain Python"
    shape = f"{OPERATORS} operators in a random acyclic graph, {MEASUREMENTS} measurements each"
    yield _row("autoscale_plus_suggest", naive_s, ours_s, f"{shape}; {naive}")
    whole_s, _ = _best_of(lambda: plus.decide(context), 30)
    text = f"{shape}, from observations to plan and reasons; {naive}, without reading observations"
    yield _row("autoscale_plus_decide", naive_s, whole_s, text)
    allowed = f"{shape}, from observations to plan and reasons; baseline: the time allowed"
    yield _row("autoscale_plus_decide_allowed", 10e-3, whole_s, allowed)


def _context() -> ScalingContext:
    rng = np.random.default_rng(3)
    names = [f"op{i:04}" for i in range(OPERATORS)]
    edges = [
        (names[int(parent)], names[child])
        for child in range(1, OPERATORS)
        for parent in set(rng.integers(0, child, 2).tolist())
        if child % 10
    ]
    start = rng.uniform(10.0, 1000.0, OPERATORS)
    growth = rng.uniform(-0.05, 0.1, OPERATORS)
    service_s = rng.uniform(1e-4, 1e-2, OPERATORS)
    window = []
    for at in range(MEASUREMENTS):
        rates = start * (1 + growth * at)
        components = tuple(
            ComponentObservation(
                name, (name,), float(rate), float(service), 4, float(rate * service * PERIOD_S)
            )
            for name, rate, service in zip(names, rates, service_s, strict=True)
        )
        window.append(
            Observation(PERIOD_S * at, PERIOD_S, float(rates.sum()), 0.0, components=components)
        )
    return ScalingContext(
        tuple(window),
        ScalingPlan(dict.fromkeys(names, 4), 4 * OPERATORS),
        Limits(1, 100_000, 5.0),
        tuple(edges),
        "space",
    )


def _line(series: list[float]) -> tuple[float, float]:
    """Least squares by sums over the whole window."""
    n = len(series)
    x = y = xx = xy = 0.0
    for i, value in enumerate(series, start=1):
        x, y, xx, xy = x + i, y + value, xx + i * i, xy + i * value
    slope = (n * xy - x * y) / (n * xx - x * x)
    return (y - slope * x) / n, slope


def _curve(xs: list[float], series: list[float]) -> tuple[float, float]:
    n = len(series)
    x, y = sum(xs), sum(series)
    slope = (n * sum(a * b for a, b in zip(xs, series, strict=True)) - x * y) / (
        n * sum(a * a for a in xs) - x * x
    )
    return (y - slope * x) / n, slope


def _naive_received(series: list[float]) -> float:
    """The best of three fits, and the rows it expects in the next iteration."""
    n = len(series)
    past, ahead = range(1, n + 1), range(n + 1, 2 * n + 1)
    fits: list[Callable[[float], float]] = []
    a, b = _line(series)
    fits.append(lambda x: a + b * x)
    c, d = _curve([math.log(x) for x in past], series)
    fits.append(lambda x: c + d * math.log(x))
    if min(series) > 0:
        e, f = _line([math.log(value) for value in series])
        fits.append(lambda x: math.exp(e + f * x))
    errors = [
        sum((fit(x) - value) ** 2 for x, value in zip(past, series, strict=True)) for fit in fits
    ]
    near = [error <= min(errors) * (1 + 1e-9) + 1e-12 for error in errors]
    best = fits[near.index(True)]
    return float(sum(math.ceil(max(0.0, best(x)) - 1e-9) for x in ahead))


def _naive_inputs(windows: OperatorWindows) -> list[float]:
    """EstimInput of every operator (ch.6 eq. 1), parents first."""
    policy = AutoscalePlus()
    rows = [0.0] * windows.size
    processed = [0.0] * windows.size
    for i in range(windows.size):  # the names are in an order that has parents first
        expected = _naive_received(windows.received_rows[i].tolist())
        parents = windows.upstreams[i]
        if parents:
            sent = zip(parents, windows.selectivity[i], strict=True)
            expected = max(expected, sum(processed[up] * ratio for up, ratio in sent))
        rows[i] = expected + float(windows.pending_rows[i])
        task = windows.duration_s / float(windows.service_time_s[i].mean())
        current = int(windows.parallelism[i])
        ideal = rows[i] / task
        wanted = current
        if ideal > current:
            wanted = max(current, math.ceil(ideal / policy.alpha - 1e-9))
        processed[i] = min(rows[i], task * wanted)
    return rows


def _best_of(work: Callable[[], Any], times: int) -> tuple[float, Any]:
    best, result = math.inf, None
    for _ in range(times):
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
    return best, result


def _row(name: str, baseline_s: float, ours_s: float, conditions: str) -> dict[str, Any]:
    return {
        "name": name, "baseline": baseline_s * 1e3, "ours": ours_s * 1e3, "unit": "ms",
        "ratio": baseline_s / ours_s, "conditions": conditions,
    }  # fmt: skip


if __name__ == "__main__":
    for row in run():
        print(json.dumps(row))
