"""Claims A5 and A6 of seed 000: a load that rises from 4 to 32 machines, and nodes that follow."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from experiments.admission.lanes import (
    AS_JUDGED,
    BOUND_S,
    HISTORY_PERIODS,
    HORIZON_PERIODS,
    Course,
    Rules,
    simulate,
)
from experiments.claim import Claim, save_figure
from penstock.admission.parallelism import QueryCosts, node_counts
from penstock.admission.registry import STRATEGIES
from penstock.forecast.holt import Holt
from penstock.forecast.outlook import outlook
from penstock.model.observation import Floats, Ints
from penstock.workloads.admission_streams import StreamWorkload, rising, stream_workload

FEWEST, MOST = 4, 32  # machines the load saturates at its lowest and at its highest
SATURATED = 0.9  # share of a machine at which it counts as saturated
PERIODS, QUICK_PERIODS = 240, 48
STREAMS, QUICK_STREAMS = 320, 64
RULES = {"queue": AS_JUDGED, "queue or load": Rules(overload_by="either")}
COSTS = QueryCosts(
    query_s_per_tuple=0.001, merge_s_per_tuple=0.0001, query_node_tuples_per_s=900.0, headroom=0.1
)
DEARER = replace(COSTS, query_s_per_tuple=2 * COSTS.query_s_per_tuple)
ROOMIER = replace(COSTS, headroom=1 - (1 - COSTS.headroom) / 2)


def claim_a5(folder: Path, seeds: Sequence[int], quick: bool) -> Claim:
    """Figure 14: time beyond the bound, latency and lanes of DRF-M, ARD and 32 static lanes."""
    courses: dict[str, list[Course]] = {}
    for seed in seeds:
        workload, capacity = _rising(seed, quick)
        for rules_name, rules in RULES.items():
            for name in ("drf-m", "ard"):
                course = simulate(workload, STRATEGIES[name], capacity, rules=rules)
                courses.setdefault(f"{name}, {rules_name}", []).append(course)
        start = _spread_evenly(workload.rates_per_s.mean(axis=1), MOST)
        courses.setdefault("static 32", []).append(simulate(workload, None, capacity, start))
    late = {name: _over(runs, "late_share") for name, runs in courses.items()}
    latency = {name: _over(runs, "latency_s") for name, runs in courses.items()}
    fewest = np.array([min(run.fewest_lanes) for run in courses["static 32"]])
    parts = {
        "drf-m is late for less time than ard": _mean(late, "drf-m, queue")
        < _mean(late, "ard, queue"),
        "static has the lowest latency": min(latency, key=lambda n: _mean(latency, n))
        == "static 32",
        "3 to 4 lanes would suffice at times": bool((fewest <= FEWEST).all()),
    }
    shown = "; ".join(
        f"{name}: late {late[name].mean():.1%} +- {late[name].std():.1%} of the time, latest lane "
        f"{latency[name].mean():.2f} +- {latency[name].std():.2f} s, lanes "
        f"{_over(courses[name], 'lanes').mean():.1f}"
        for name in courses
    )
    failed = [name for name, holds in parts.items() if not holds]
    return Claim(
        id="A5",
        paper="load from 4 to 32 machines, bound 5 s: DRF-M violates it for less time than ARD; "
        "static 32 has the lowest latency and uses 32 nodes when 3 to 4 suffice",
        ours=f"{shown}; fewest lanes at the lowest {fewest.mean():.1f}",
        holds=not failed,
        where="sim",
        reason=f"not so: {'; '.join(failed)}" if failed else "",
        figures=_figure_a5(courses, folder),
        numbers={
            "parts": parts,
            "late_share": {name: values.tolist() for name, values in late.items()},
            "latency_s": {name: values.tolist() for name, values in latency.items()},
        },
    )


def _rising(seed: int, quick: bool) -> tuple[StreamWorkload, float]:
    rng = np.random.default_rng([seed, 5])
    streams, periods = (QUICK_STREAMS, QUICK_PERIODS) if quick else (STREAMS, PERIODS)
    workload = rising(rng, (1.0, MOST / FEWEST), streams, periods)
    peak = float(np.sort(workload.rates_per_s.sum(axis=0))[-5:].mean())
    return workload, peak / (MOST * SATURATED)


def _spread_evenly(rates: Floats, lanes: int) -> Ints:
    """The largest first, each to the least loaded lane."""
    lane, load = np.zeros(len(rates), dtype=np.int64), np.zeros(lanes)
    for stream in np.argsort(-rates):
        lane[stream] = load.argmin()
        load[lane[stream]] += rates[stream]
    return lane


def _over(courses: Sequence[Course], measure: str) -> Floats:
    return np.array([float(np.mean(getattr(course, measure))) for course in courses])


def _mean(table: dict[str, Floats], name: str) -> float:
    return float(table[name].mean())


def _figure_a5(courses: dict[str, list[Course]], folder: Path) -> tuple[str, ...]:
    figure = Figure(figsize=(7, 5))
    upper, lower = figure.subplots(2, 1, sharex=True)
    for name, runs in courses.items():
        upper.plot(runs[0].latency_s, label=name)
        lower.plot(runs[0].lanes, label=name)
    lower.plot(courses["static 32"][0].fewest_lanes, label="lower bound", color="black", ls=":")
    upper.axhline(BOUND_S, color="grey", ls="--")
    upper.set(ylabel="latency of the latest lane, s")
    upper.set_yscale("symlog", linthresh=1.0)
    lower.set(ylabel="lanes", xlabel="period")
    lower.legend(fontsize=8)
    return save_figure(figure, folder, "admission-A5")


@dataclass(frozen=True)
class _Followed:
    """Nodes by the forecast, what the actual rate asked for, and that rate, period by period."""

    query: Ints
    merge: Ints
    asked: Ints
    total_per_s: Floats

    @property
    def busy(self) -> Floats:
        """Share of its time a query node worked."""
        return self.total_per_s * COSTS.query_s_per_tuple / self.query


def claim_a6(folder: Path, seeds: Sequence[int], quick: bool) -> Claim:
    """Equations 1a and 1b over a load with a trend: nodes by the forecast total."""
    runs = [_followed(seed, QUICK_PERIODS if quick else PERIODS) for seed in seeds]
    nodes = _Followed(
        *(
            np.concatenate([getattr(run, column.name) for run in runs])
            for column in fields(_Followed)
        )
    )
    off = np.abs(nodes.query - nodes.asked)
    follows = float(np.corrcoef(nodes.total_per_s, nodes.query)[0, 1])
    usable = 1 - COSTS.headroom
    merge_load = nodes.query * COSTS.query_node_tuples_per_s * COSTS.merge_s_per_tuple
    parts = {
        "query nodes follow the total rate (correlation at least 0.95)": follows >= 0.95,
        "within one node of what the actual rate asks for, 95% of the time": bool(
            np.mean(off <= 1) >= 0.95
        ),
        "merge nodes within their headroom": bool(
            np.all(merge_load <= nodes.merge * usable + 1e-9)
        ),
        "twice the cost, or half the share left by the headroom, asks for twice the nodes": all(
            abs(node_counts(total, changed).query - 2 * node_counts(total, COSTS).query) <= 1
            for total in nodes.total_per_s.tolist()
            for changed in (DEARER, ROOMIER)
        ),
    }
    failed = [name for name, holds in parts.items() if not holds]
    return Claim(
        id="A6",
        paper="numbers of query and merge nodes follow the forecast total rate, the per-tuple "
        "costs and the headroom (eq. 1a and 1b)",
        ours=f"correlation with the actual rate {follows:.3f}; off by {off.mean():.2f} +- "
        f"{off.std():.2f} nodes of {nodes.asked.mean():.1f}; query nodes {nodes.busy.mean():.0%} "
        f"+- {nodes.busy.std():.0%} busy, at most {nodes.busy.max():.0%}, and beyond their "
        f"headroom of {COSTS.headroom:.0%} for {np.mean(nodes.busy > usable):.0%} of the time",
        holds=not failed,
        where="pure",
        reason=f"not so: {'; '.join(failed)}" if failed else "",
        figures=_figure_a6(runs[0], folder),
        numbers={"parts": parts, "correlation": follows, "off": float(off.mean())},
    )


def _followed(seed: int, periods: int) -> _Followed:
    rates = stream_workload("tfvar", np.random.default_rng([seed, 6]), periods=periods).rates_per_s
    ahead = range(HISTORY_PERIODS, periods)
    forecasts = [
        outlook(rates[:, now - HISTORY_PERIODS : now], HORIZON_PERIODS, Holt()).next_rate_per_s
        for now in ahead
    ]
    totals = rates[:, HISTORY_PERIODS:].sum(axis=0)
    by_forecast = [node_counts(float(forecast.sum()), COSTS) for forecast in forecasts]
    return _Followed(
        query=np.array([nodes.query for nodes in by_forecast]),
        merge=np.array([nodes.merge for nodes in by_forecast]),
        asked=np.array([node_counts(total, COSTS).query for total in totals.tolist()]),
        total_per_s=totals,
    )


def _figure_a6(nodes: _Followed, folder: Path) -> tuple[str, ...]:
    figure = Figure(figsize=(7, 3))
    axis = figure.subplots()
    period = range(len(nodes.query))
    axis.step(period, nodes.query, label="query nodes by forecast")
    axis.step(period, nodes.asked, label="by the actual rate", ls=":")
    axis.step(period, nodes.merge, label="merge nodes")
    axis.set(xlabel="period", ylabel="nodes")
    axis.legend(fontsize=8)
    return save_figure(figure, folder, "admission-A6")
