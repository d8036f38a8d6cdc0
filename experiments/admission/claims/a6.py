"""A6 (eq. 1a and 1b): nodes follow the forecast total rate."""

from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from experiments.admission.trials.lanes import (
    HISTORY_PERIODS,
    HORIZON_PERIODS,
)
from experiments.admission.workloads.streams import stream_workload
from experiments.claim import Claim, judged, save_figure
from experiments.statistics import spread
from penstock.admission.parallelism import QueryCosts, node_counts
from penstock.forecast.holt import Holt
from penstock.forecast.outlook import outlook
from penstock.model.observation import Floats, Ints

COSTS = QueryCosts(
    query_s_per_tuple=0.001, merge_s_per_tuple=0.0001, query_node_tuples_per_s=900.0, headroom=0.1
)
DEARER = replace(COSTS, query_s_per_tuple=2 * COSTS.query_s_per_tuple)
ROOMIER = replace(COSTS, headroom=1 - (1 - COSTS.headroom) / 2)
PERIODS, QUICK_PERIODS = 240, 48


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


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
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
    return judged(
        "A6",
        paper="numbers of query and merge nodes follow the forecast total rate, the per-tuple "
        "costs and the headroom (eq. 1a and 1b)",
        ours=f"correlation with the actual rate {follows:.3f}; off by {spread(off):.2f} nodes of "
        f"{nodes.asked.mean():.1f}; query nodes {spread(nodes.busy):.0%} busy, at most "
        f"{nodes.busy.max():.0%}, and beyond their headroom of {COSTS.headroom:.0%} for "
        f"{np.mean(nodes.busy > usable):.0%} of the time",
        where="pure",
        parts=parts,
        figures=_figure(runs[0], folder),
        numbers={"correlation": follows, "off": float(off.mean())},
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


def _figure(nodes: _Followed, folder: Path) -> tuple[str, ...]:
    figure = Figure(figsize=(7, 3))
    axis = figure.subplots()
    period = range(len(nodes.query))
    axis.step(period, nodes.query, label="query nodes by forecast")
    axis.step(period, nodes.asked, label="by the actual rate", ls=":")
    axis.step(period, nodes.merge, label="merge nodes")
    axis.set(xlabel="period", ylabel="nodes")
    axis.legend(fontsize=8)
    return save_figure(figure, folder, "admission-A6")
