"""R5: one operator's tasks under OSG and under round robin."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from experiments.claim import Claim, Place, judged, save_figure
from experiments.routing.trials.osg import TaskRun, task_run
from experiments.statistics import Spread, spread

METHODS = ("osg", "round-robin")
VALUES = {False: "uniform", True: "zipf"}  # by whether they are skewed
ABOUT = 0.10  # what "about" may be off
QUICK_SHRINK = 0.25

Runs = Mapping[tuple[bool, str], Sequence[TaskRun]]  # by whether values are skewed, and method


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """Both methods in simulation, with uniform and skewed values."""
    shrink = QUICK_SHRINK if quick else 1.0
    runs = {
        (skewed, method): [task_run(seed, skewed, method, shrink) for seed in seeds]
        for skewed in VALUES
        for method in METHODS
    }
    return claim_of(runs, "sim", folder, "routing-R5")


def claim_of(
    runs: Runs, where: Place, folder: Path, figure: str, conditions: str = "", why: str = ""
) -> Claim:
    """The claim as these runs, simulated or on Spark, have it."""
    busy = {key: spread(run.busy_deviation for run in here) for key, here in runs.items()}
    after = {key: spread(run.latency_after_s for run in here) for key, here in runs.items()}
    latency = {skewed: _saved(runs, skewed, lambda run: run.latency_after_s) for skewed in VALUES}
    queue = {skewed: _saved(runs, skewed, lambda run: run.pending_rows) for skewed in VALUES}
    return judged(
        "R5",
        paper="OSG against round robin, values of 10 to 90 ms: deviation of CPU use 4.4 against "
        "5.6 points (uniform) and 3.8 against 6.8 (Zipf 1.5); latency after a reconfiguration "
        "about 39% lower; queue fill 26% and 11% lower.",
        ours=f"{conditions}Deviation of tasks' busy time: uniform {busy[False, 'osg']:.1f} against "
        f"{busy[False, 'round-robin']:.1f}, Zipf {busy[True, 'osg']:.1f} against "
        f"{busy[True, 'round-robin']:.1f} points; latency after the change lower by "
        f"{latency[False]:.1%} and {latency[True]:.1%}; queue fill lower by {queue[False]:.1%} and "
        f"{queue[True]:.1%}.",
        where=where,
        parts={
            "deviation lower, uniform": busy[False, "osg"].mean < busy[False, "round-robin"].mean,
            "deviation lower, Zipf": busy[True, "osg"].mean < busy[True, "round-robin"].mean,
            "latency lower by 39% or more": min(s.mean for s in latency.values()) >= 0.39,
            "queue fill lower by about 26% or more, uniform": queue[False].mean >= 0.26 - ABOUT,
            "queue fill lower by about 11% or more, Zipf": queue[True].mean >= 0.11 - ABOUT,
        },
        why=why,
        figures=save_figure(_figure(busy, latency, queue), folder, figure),
        numbers={
            "busy_deviation": {f"{VALUES[s]} {m}": found.pair for (s, m), found in busy.items()},
            "latency_after_s": {f"{VALUES[s]} {m}": found.pair for (s, m), found in after.items()},
            "latency_lower": [latency[skewed].pair for skewed in VALUES],
            "queue_lower": [queue[skewed].pair for skewed in VALUES],
        },
    )


def _saved(runs: Runs, skewed: bool, of: Callable[[TaskRun], float]) -> Spread:
    pairs = zip(runs[skewed, "osg"], runs[skewed, "round-robin"], strict=True)
    return spread(1 - of(osg) / of(robin) for osg, robin in pairs)


def _figure(
    busy: Mapping[tuple[bool, str], Spread],
    latency: Mapping[bool, Spread],
    queue: Mapping[bool, Spread],
) -> Figure:
    figure = Figure(figsize=(9, 3.5))
    left, right = figure.subplots(1, 2)
    places = np.arange(2)
    for shift, method in ((-0.2, "osg"), (0.2, "round-robin")):
        found = [busy[skewed, method] for skewed in VALUES]
        left.bar(
            places + shift, [f.mean for f in found], 0.4, yerr=[f.deviation for f in found],
            label=method,
        )  # fmt: skip
    left.set_ylabel("deviation of busy time, points")
    for shift, name, of in ((-0.2, "latency after change", latency), (0.2, "queue fill", queue)):
        means = [100 * of[skewed].mean for skewed in VALUES]
        spreads = [100 * of[skewed].deviation for skewed in VALUES]
        right.bar(places + shift, means, 0.4, yerr=spreads, label=name)
    right.set_ylabel("lower with OSG by, %")
    for axes in (left, right):
        axes.set_xticks(places, ["uniform", "Zipf 1.5"])
        axes.legend()
    return figure
