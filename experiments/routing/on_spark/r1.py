"""R1 on Spark (Fig. 12): what the tasks behind a source are dealt, by panes and rate-aware."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from pyspark.sql import SparkSession

from experiments.claim import Claim, judged, save_figure
from experiments.on_spark import reporter, spark_session
from experiments.routing.on_spark import panes
from experiments.routing.trials.balance import NODES
from experiments.statistics import spread
from penstock.model.observation import Floats
from penstock.routing.advice import load_ratio
from penstock.routing.panes import RECENT_PANES

METHODS = ("rate-aware-panes", "panes")
ABOUT = 0.10
SECONDS, QUICK_SECONDS = 400, 120


def claim(folder: Path, seeds: Sequence[int], quick: bool) -> Claim:
    """In a session of its own."""
    with spark_session("routing-R1", "local[2]") as session:
        return judge(
            session, folder, seeds, QUICK_SECONDS if quick else SECONDS, reporter("routing")
        )


def judge(
    session: SparkSession,
    folder: Path,
    seeds: Sequence[int],
    seconds: int,
    say: Callable[[str], None],
) -> Claim:
    """Both ways over the same seconds, with and without jumps of the rate."""
    ratios: dict[str, list[Floats]] = {method: [] for method in METHODS}
    for seed in seeds:
        for method in METHODS:
            say(f"R1, {method}, seed {seed}")
            ratios[method].append(_ratios(panes.pane_loads(session, method, seed, seconds)))
    aware, plain = (spread(float(r.mean()) for r in ratios[method]) for method in METHODS)
    peak = spread(float(r.max()) for r in ratios["panes"])
    return judged(
        "R1",
        paper="Rate-aware panes keep the load ratio below 7% on average after warm-up; plain panes "
        "are at about 60% and jump to 100%.",
        ours=f"Rows of the {NODES} tasks behind a source over the last round of {NODES} panes of "
        f"1 s: rate-aware {aware:.1%}, plain {plain:.1%} (worst {peak:.1%}).",
        where="spark",
        parts={
            "rate-aware below 7% on average": aware.mean < 0.07,
            "plain about 60%": abs(plain.mean - 0.6) <= ABOUT,
            "plain jumps to about 100%": abs(peak.mean - 1.0) <= ABOUT,
        },
        why="A round of 16 panes has one jump or more in 81% of all cases, and then a ratio of 77% "
        "or more, so that plain panes are above 60% on average.",
        figures=_figure(ratios, folder),
        numbers={"rate_aware": aware.pair, "plain": plain.pair, "plain_worst": peak.pair},
    )


def _ratios(loads: Floats) -> Floats:
    """Of the last round, once the statistics of pane sizes are of full length."""
    sums = np.cumsum(loads, axis=0)
    sums[NODES:] -= sums[:-NODES].copy()
    return np.array([load_ratio(load) for load in sums[RECENT_PANES:]])


def _figure(ratios: dict[str, list[Floats]], folder: Path) -> tuple[str, ...]:
    figure = Figure(figsize=(7, 3.2))
    axis = figure.subplots()
    for method, found in ratios.items():
        axis.plot(100 * found[0], label=method)
    axis.set(xlabel="s after warm-up", ylabel="load ratio of the last round, %")
    axis.legend(fontsize=8)
    return save_figure(figure, folder, "routing-R1-spark")
