"""D1 (Fig. 6): the recommended allocation is the best of itself and its five nearest."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from experiments.claim import Claim, judged, save_figure
from experiments.drs.trials.allocations import QUICK, Measured, Sizes, measured
from experiments.statistics import spread

PRINTED = {"VLD": "10:11:1", "FPD": "6:13:3"}


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """The recommended allocation is the best of itself and its five nearest."""
    found = {app: measured(app, QUICK if quick else Sizes(), seeds) for app in PRINTED}
    parts = dict[str, bool]()
    for app, runs in found.items():
        parts[f"{app}: {PRINTED[app]} is recommended"] = runs[0].name == PRINTED[app]
        parts[f"{app}: it has the lowest mean"] = runs[0].mean == min(r.mean for r in runs)
        least = min(r.deviation for r in runs)
        parts[f"{app}: it has the lowest spread"] = runs[0].deviation == least
    ours = "; ".join(
        f"{app} "
        + ", ".join(f"{r.name} {spread(r.mean_s)} s (deviation {r.deviation:.3g} s)" for r in runs)
        for app, runs in found.items()
    )
    return judged(
        "D1",
        paper="With 22 processors the recommended allocation (VLD 10:11:1, FPD 6:13:3) has the "
        "lowest mean and standard deviation of its five nearest.",
        ours=f"Mean sojourn time, recommended first: {ours}.",
        where="sim",
        parts=parts,
        figures=save_figure(_figure(found), folder, "drs-D1"),
        numbers={
            "sojourn_s": {
                f"{app} {run.name}": {
                    "mean": spread(run.mean_s).pair,
                    "std": spread(run.deviation_s).pair,
                }
                for app, runs in found.items()
                for run in runs
            },
        },
    )


def _figure(found: dict[str, tuple[Measured, ...]]) -> Figure:
    figure = Figure(figsize=(9, 3.4))
    for number, (app, runs) in enumerate(found.items()):
        axes = figure.add_subplot(1, 2, number + 1)
        places = np.arange(len(runs))
        axes.bar(places - 0.2, [1e3 * r.mean for r in runs], 0.4, label="mean")
        axes.bar(places + 0.2, [1e3 * r.deviation for r in runs], 0.4, label="standard deviation")
        names = [f"*{r.name}" if place == 0 else r.name for place, r in enumerate(runs)]
        axes.set_xticks(places, names, fontsize=7)
        axes.set_yscale("log")
        axes.set_ylabel("sojourn time (ms)")
        axes.set_title(f"{app}, * recommended")
        axes.legend(fontsize=7)
    figure.subplots_adjust(wspace=0.3)
    return figure
