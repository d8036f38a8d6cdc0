"""D2 (Fig. 7): estimated and measured sojourn times order the allocations alike."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from experiments.claim import Claim, judged, save_figure
from experiments.drs.trials.allocations import QUICK, Measured, Sizes, measured, steady_share
from experiments.statistics import rank_correlation, spread

APPLICATIONS = ("VLD", "FPD")
SLIGHTLY = 0.25  # by how much an estimate may be low on average and still be accurate
ORDERED = 0.9  # rank correlation


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """Estimated and measured sojourn times order the allocations alike."""
    found = {app: measured(app, QUICK if quick else Sizes(), seeds) for app in APPLICATIONS}
    correlation = {app: _rank_correlation(runs) for app, runs in found.items()}
    share = {app: _estimated_share(runs) for app, runs in found.items()}
    parts = {
        f"{app}: rank correlation of at least {ORDERED:g}": correlation[app] >= ORDERED
        for app in APPLICATIONS
    }
    parts["VLD: accurate, slightly low"] = 1 - SLIGHTLY <= share["VLD"] < 1
    parts["FPD: lower than that"] = share["FPD"] < share["VLD"]
    steady = [steady_share(QUICK if quick else Sizes(), seed) for seed in seeds]
    why = (
        " The frame rate that is drawn anew every second makes VLD's queues longer than those of "
        f"Poisson arrivals at this load; with Poisson frames of one rate the estimate is "
        f"{spread(steady):.0%} of the measured."
    )
    ours = "; ".join(
        f"{app}: rank correlation {correlation[app]:.2f}, estimate {share[app]:.0%} of measured"
        for app in APPLICATIONS
    )
    return judged(
        "D2",
        paper="Estimated and measured sojourn times order the allocations alike; computation-bound "
        "VLD is estimated accurately, slightly low; data-bound FPD low but monotone.",
        ours=f"{ours} (mean over the allocations with a finite estimate).",
        where="sim",
        parts=parts,
        why="" if parts["VLD: accurate, slightly low"] else why,
        figures=save_figure(_figure(found), folder, "drs-D2"),
        numbers={
            "rank_correlation": correlation,
            "estimated_share": share,
            "estimated_share_with_poisson_frames": spread(steady).pair,
        },
    )


def _rank_correlation(runs: tuple[Measured, ...]) -> float:
    """The few allocations have no equal estimates but infinite ones."""
    return rank_correlation([r.estimate_s for r in runs], [r.mean for r in runs])


def _estimated_share(runs: tuple[Measured, ...]) -> float:
    return float(np.mean([r.estimate_s / r.mean for r in runs if np.isfinite(r.estimate_s)]))


def _figure(found: dict[str, tuple[Measured, ...]]) -> Figure:
    figure = Figure(figsize=(9, 3.4))
    for number, (app, runs) in enumerate(found.items()):
        axes = figure.add_subplot(1, 2, number + 1)
        finite = [r for r in runs if np.isfinite(r.estimate_s)]
        estimates = [1e3 * r.estimate_s for r in finite]
        axes.errorbar(
            estimates, [1e3 * r.mean for r in finite], [1e3 * np.std(r.mean_s) for r in finite],
            fmt="o", capsize=2,
        )  # fmt: skip
        for run in finite:
            axes.annotate(run.name, (1e3 * run.estimate_s, 1e3 * run.mean), fontsize=7)
        axes.plot(estimates, estimates, "--", color="grey", label="estimate = measured")
        axes.set_xlabel("estimated (ms)")
        axes.set_ylabel("measured (ms)")
        axes.set_title(app)
        axes.legend(fontsize=7)
    figure.subplots_adjust(wspace=0.3)
    return figure
