"""Simulating an hour of ten operators at 100 ms resolution, against one event for each row."""

import heapq
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter

import numpy as np

from penstock.scaling.policies.static import Static
from penstock.sim.run import simulate
from penstock.sim.scenario import (
    BatchCost,
    ClusterSpec,
    OperatorSpec,
    Scenario,
    SourceSpec,
    Upstream,
)
from penstock.sim.service import ServiceTime
from penstock.workloads.profiles import constant

SPAN_S = 3600.0
BASELINE_SPAN_S = 20.0
RATE_PER_S = 1000.0
SERVERS = 4
LOAD = 0.7
# name, upstreams: a source, a split into two branches, a copy, a union, and a tail
GRAPH: tuple[tuple[str, tuple[Upstream, ...]], ...] = (
    ("parse", (Upstream("in"),)),
    ("clean", (Upstream("parse"),)),
    ("left", (Upstream("clean", 0.6),)),
    ("right", (Upstream("clean", 0.4),)),
    ("enrich", (Upstream("left"),)),
    ("join", (Upstream("enrich"), Upstream("right"))),
    ("window", (Upstream("join"),)),
    ("alert", (Upstream("window"),)),
    ("store", (Upstream("window"),)),
    ("report", (Upstream("store"),)),
)
SHARE = {"left": 0.6, "right": 0.4, "enrich": 0.6}


def ten_operators(sharing: str, duration_s: float) -> Scenario:
    """Ten operators, each loaded to the same share of its four processors."""
    operators = tuple(
        OperatorSpec(
            name,
            upstreams,
            ServiceTime("exponential", LOAD * SERVERS / (RATE_PER_S * SHARE.get(name, 1.0))),
            processors=SERVERS,
        )
        for name, upstreams in GRAPH
    )
    if sharing == "time":
        operators = tuple(
            replace(o, service=ServiceTime("exponential", o.service.mean_s / len(GRAPH)))
            for o in operators
        )
    processors = SERVERS * len(GRAPH) if sharing == "space" else SERVERS
    return Scenario(
        "ten", duration_s, 5.0, (SourceSpec("in", constant(RATE_PER_S)),), operators,
        ClusterSpec(1, 1, 1, slots=processors), sharing, BatchCost(0.25),
    )  # fmt: skip


def readers_of(scenario: Scenario) -> dict[str, list[tuple[str, float]]]:
    """Who reads whom, and which share."""
    readers: dict[str, list[tuple[str, float]]] = {}
    for operator in scenario.operators:
        for upstream in operator.upstreams:
            readers.setdefault(upstream.name, []).append((operator.name, upstream.share))
    return readers


def batches_row_by_row(scenario: Scenario) -> float:
    """Mean latency by the textbook: micro-batches whose rows are walked through one by one."""
    rng, readers = np.random.default_rng(scenario.seed), readers_of(scenario)
    mean_s = {o.name: o.service.mean_s for o in scenario.operators}
    now_s, next_s, total_s, results = 0.0, 0.0, 0.0, 0
    while now_s < scenario.duration_s:
        origins, work_s, done = [], 0.0, []
        while next_s <= now_s:
            origins.append(next_s)
            next_s += float(rng.exponential(1.0 / RATE_PER_S))
        for origin_s in origins:
            walk = ["in"]
            while walk:
                name = walk.pop()
                if name != "in":
                    work_s += float(rng.exponential(mean_s[name]))
                place, targets = float(rng.random()), readers.get(name, [])
                for target, share in targets:
                    if share == 1.0 or 0.0 <= place < share:
                        walk.append(target)
                    place -= share if share < 1.0 else 0.0
                if not targets:
                    done.append(origin_s)
        now_s += scenario.batch.overhead_s(SERVERS) + work_s / SERVERS
        total_s += sum(now_s - origin_s for origin_s in done)
        results += len(done)
    return total_s / results


def event_for_each_row(scenario: Scenario) -> float:
    """Mean latency by the textbook: a heap of events, one row a job, servers shared in space."""
    rng, readers = np.random.default_rng(scenario.seed), readers_of(scenario)
    mean_s = {o.name: o.service.mean_s for o in scenario.operators}
    free = {o.name: o.processors for o in scenario.operators}
    queues: dict[str, deque[float]] = {o.name: deque() for o in scenario.operators}
    events: list[tuple[float, int, str, str, float]] = [(0.0, 0, "arrive", "in", 0.0)]
    number, total_s, results = 0, 0.0, 0
    while events:
        now_s, _, what, name, origin_s = heapq.heappop(events)
        if what == "arrive" and name == "in":
            if now_s > scenario.duration_s:
                continue
            number += 1
            gap_s = float(rng.exponential(1.0 / RATE_PER_S))
            heapq.heappush(events, (now_s + gap_s, number, "arrive", "in", now_s + gap_s))
        elif what == "arrive":
            queues[name].append(origin_s)
        else:
            free[name] += 1
        if name != "in" and free[name] and queues[name]:
            free[name] -= 1
            number += 1
            end_s = now_s + float(rng.exponential(mean_s[name]))
            heapq.heappush(events, (end_s, number, "depart", name, queues[name].popleft()))
        if what == "depart" or name == "in":
            place = float(rng.random())
            targets = readers.get(name, [])
            for target, share in targets:
                if share == 1.0 or 0.0 <= place < share:
                    number += 1
                    heapq.heappush(events, (now_s, number, "arrive", target, origin_s))
                place -= share if share < 1.0 else 0.0
            if not targets:
                total_s, results = total_s + now_s - origin_s, results + 1
    return total_s / results


def run() -> Iterator[dict[str, object]]:
    """Seconds for an hour of simulated time, in both ways of sharing processors."""
    for sharing, row_by_row in (("space", event_for_each_row), ("time", batches_row_by_row)):
        began_s = perf_counter()
        exact_mean_s = row_by_row(ten_operators(sharing, BASELINE_SPAN_S))
        baseline_s = (perf_counter() - began_s) * SPAN_S / BASELINE_SPAN_S
        scenario = ten_operators(sharing, SPAN_S)
        began_s = perf_counter()
        result = simulate(scenario, Static())
        ours_s = perf_counter() - began_s
        yield {
            "name": f"simulator/hour_of_ten_operators_{sharing}",
            "baseline": round(baseline_s, 3),
            "ours": round(ours_s, 3),
            "unit": "s",
            "ratio": round(baseline_s / ours_s, 1),
            "conditions": (
                f"3600 s simulated, 10 operators, {RATE_PER_S:g} rows/s, processors shared in "
                f"{sharing}, 100 ms steps of {scenario.jobs_per_step} jobs, loop period 5 s; "
                f"baseline: one row at a time in plain Python, without loop or observations, over "
                f"{BASELINE_SPAN_S:g} s of simulated time and scaled to 3600 s; mean latency "
                f"{result.results.mean_s:.3f} s, baseline {exact_mean_s:.3f} s"
            ),
        }


if __name__ == "__main__":
    import json

    for line in run():
        sys.stdout.write(json.dumps(line) + "\n")
