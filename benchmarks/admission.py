"""Time of an admission decision over very many streams, against a plain loop over streams."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from penstock.admission.decide import decide_admission
from penstock.admission.problem import NEW, AdmissionProblem
from penstock.admission.registry import STRATEGIES
from penstock.forecast.holt import Holt
from penstock.forecast.metadata import metadata_from
from penstock.forecast.outlook import Outlook

SIZES = (100_000, 1_000_000)
LIMITS_S = {100_000: 0.5, 1_000_000: 5.0}  # a decision may take so long
PER_LANE = (1000, 10)  # streams that fill a lane
PLAIN_STREAMS = 10_000
HISTORY = 12  # periods
HORIZON = 3
ROUNDS = 3


def run() -> Iterator[dict[str, Any]]:
    """Rows with a ratio above 1 where ours is better."""
    for per_lane in PER_LANE:
        yield from _against_the_plain_loop(per_lane)
    yield from _forecast()


def _against_the_plain_loop(per_lane: int) -> Iterator[dict[str, Any]]:
    small = problem_of(PLAIN_STREAMS, min(per_lane, PLAIN_STREAMS // 10), seed=0)
    for name in STRATEGIES:
        belief = STRATEGIES[name].believe(small)
        plain_s = _best_of(lambda: _plain(small, name, belief), 1) / PLAIN_STREAMS  # noqa: B023
        for streams in (PLAIN_STREAMS, *SIZES):
            problem = problem_of(streams, per_lane, seed=0)
            strategy = STRATEGIES[name]
            ours_s = _best_of(lambda: decide_admission(problem, strategy))  # noqa: B023
            plan = decide_admission(problem, strategy).plan
            yield {
                "name": f"admission {name} {streams} streams, {per_lane} a lane",
                "baseline": plain_s * streams,
                "ours": ours_s,
                "unit": "s",
                "ratio": plain_s * streams / ours_s,
                "conditions": (
                    f"plain Python loop of Algorithm 1, timed on {PLAIN_STREAMS} streams and "
                    f"taken {streams // PLAIN_STREAMS} times, which favours it; "
                    f"{HISTORY} periods of history, horizon {HORIZON}, half the streams with "
                    "meta-data, 1% new; "
                    f"{len(plan.redirected)} redirected, {plan.lanes_in_use} lanes, at least "
                    f"{plan.lower_bound}; {_kept(streams, ours_s)}"
                ),
            }


def _kept(streams: int, took_s: float) -> str:
    if streams not in LIMITS_S:
        return "both timed at this size"
    verdict = "kept" if took_s <= LIMITS_S[streams] else "missed"
    return f"limit {LIMITS_S[streams]:g} s {verdict}"


def _forecast() -> Iterator[dict[str, Any]]:
    history = problem_of(SIZES[-1], 1000, seed=1).rates_per_s
    sample = history[:PLAIN_STREAMS]
    pairs = [(a, g) for a in Holt().level_weights for g in Holt().trend_weights]
    plain_s = _best_of(lambda: [_plain_holt(rates, pairs) for rates in sample.tolist()], 1)
    ours_s = _best_of(lambda: Holt().forecast(history, (1, HORIZON)))
    yield {
        "name": f"admission Holt fitted for {len(history)} streams",
        "baseline": plain_s * len(history) / PLAIN_STREAMS,
        "ours": ours_s,
        "unit": "s",
        "ratio": plain_s * len(history) / PLAIN_STREAMS / ours_s,
        "conditions": f"one stream at a time, timed on {PLAIN_STREAMS}; {HISTORY} periods",
    }


def problem_of(streams: int, per_lane: int, seed: int) -> AdmissionProblem:
    """Lanes filled to 99% on average, rates with a trend of up to 1% a period and some noise."""
    rng = np.random.default_rng(seed)
    lanes = streams // per_lane
    base = rng.uniform(20.0, 180.0, streams)
    trend = rng.uniform(-0.01, 0.01, streams)
    noise = rng.normal(1.0, 0.02, (streams, HISTORY))
    rates = base[:, None] * (1 + trend[:, None] * np.arange(HISTORY)) * noise
    lane = rng.permutation(np.arange(streams) % lanes)
    lane[rng.random(streams) < 0.01] = NEW
    cycle = rng.integers(6, 30, streams)
    rows = [
        {"greatest_rate": float(b) * 1.3, "least_rate": 0.0, "period": int(c), "phase": 1,
         "transition": "trend"} if b > 100 else {}
        for b, c in zip(base, cycle, strict=True)
    ]  # fmt: skip
    return AdmissionProblem(
        rates_per_s=rates,
        lane=lane,
        queue_rows=rng.uniform(0.0, 500.0, (lanes, 10)),
        lane_capacity_per_s=float(base.sum() / lanes / 0.99),
        latency_bound_s=5.0,
        horizon=HORIZON,
        metadata=metadata_from(rows),
    )


def _plain(problem: AdmissionProblem, name: str, belief: Outlook) -> list[float]:
    """Algorithm 1 over lists, as printed: a search over all lanes for each stream placed."""
    need, rise = belief.needed_rate_per_s.tolist(), belief.rise_per_s.tolist()
    if name in ("drf", "drf-m"):
        pairs = [(a, g) for a in Holt().level_weights for g in Holt().trend_weights]
        for rates in problem.rates_per_s.tolist():
            _plain_holt(rates, pairs)
    capacity = problem.lane_capacity_per_s
    members: list[list[int]] = [[] for _ in range(problem.lanes)]
    moving = []
    for stream, lane in enumerate(problem.lane.tolist()):
        (moving if lane == NEW else members[lane]).append(stream)
    order = {"ari": lambda s: need[s], "ard": lambda s: -need[s]}.get(name, lambda s: -rise[s])
    load = [sum(need[s] for s in streams) for streams in members]
    bins = []
    for lane, streams in enumerate(members):
        if name == "par":
            moving, load[lane] = moving + streams, 0.0
            bins.append(lane)
        elif load[lane] > capacity:
            for stream in sorted(streams, key=order):
                if load[lane] <= capacity:
                    break
                load[lane] -= need[stream]
                moving.append(stream)
        else:
            bins.append(lane)
    for stream in sorted(moving, key=lambda s: -need[s]):
        fitting = [lane for lane in bins if load[lane] + need[stream] <= capacity]
        best = max(fitting, key=lambda lane: load[lane], default=None)
        if best is None:
            best = len(load)
            load.append(0.0)
            bins.append(best)
        load[best] += need[stream]
    return load


def _plain_holt(rates: list[float], pairs: list[tuple[float, float]]) -> tuple[float, float]:
    best = (np.inf, 0.0, 0.0)
    for alpha, gamma in pairs:
        level, trend, missed = rates[0], (rates[3] - rates[0]) / 3, 0.0
        for rate in rates[1:]:
            error = rate - level - trend
            missed += error * error
            before = level
            level = alpha * rate + (1 - alpha) * (level + trend)
            trend = gamma * (level - before) + (1 - gamma) * trend
        best = min(best, (missed, level, trend))
    return best[1], best[2]


def _best_of(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    times = []
    for _ in range(rounds):
        start_s = time.perf_counter()
        work()
        times.append(time.perf_counter() - start_s)
    return min(times)


if __name__ == "__main__":
    for row in run():
        print(json.dumps(row))
