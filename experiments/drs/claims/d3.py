"""D3 (Fig. 8): from bad starts, one re-allocation at T_ra reaches the optimum's latency."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from experiments.claim import Claim, judged, save_figure
from experiments.drs.trials.rescaling import (
    RUN_MIN,
    STARTS,
    T_RA_MIN,
    Run,
    reallocated,
)
from experiments.drs.workloads.applications import written
from experiments.statistics import spread

SETTLED_MIN = 5  # after a re-allocation, for what had piled up
ALIKE = 0.1  # what the latency may differ by from that of the run that began with the optimum


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """From bad starts, one re-allocation at T_ra reaches the optimum's latency."""
    apps = {"VLD": STARTS["VLD"]} if quick else STARTS
    runs = {
        (app, start): [reallocated(app, start, seed) for seed in seeds]
        for app, starts in apps.items()
        for start in starts
    }
    since = T_RA_MIN + SETTLED_MIN
    parts, lines = dict[str, bool](), list[str]()
    for app, starts in apps.items():
        optimum = [run.mean_s(since) for run in runs[app, starts[0]]]
        parts[f"{app}: none from {written(starts[0])}"] = not any(
            run.changes for run in runs[app, starts[0]]
        )
        lines.append(f"{app} from {written(starts[0])}: {spread(optimum)} s")
        for start in starts[1:]:
            here = runs[app, start]
            after = [run.mean_s(since) for run in here]
            parts[f"{app}: one at T_ra from {written(start)}"] = all(
                run.changes == (T_RA_MIN,) for run in here
            )
            parts[f"{app}: from {written(start)} to the optimum"] = all(
                run.allocations[-1] == starts[0] for run in here
            )
            parts[f"{app}: from {written(start)} the optimum's latency"] = bool(
                np.mean(after) <= (1 + ALIKE) * np.mean(optimum)
            )
            before = [float(np.nanmean(run.latency_s[:T_RA_MIN])) for run in here]
            lines.append(
                f"from {written(start)}: {spread(before)} s before, {spread(after)} s after"
            )
    return judged(
        "D3",
        paper="From two bad starts, one re-allocation at T_ra (minute 14) reaches the latency of "
        "the run that began with the optimum.",
        ours="; ".join(lines) + f" (after: from minute {since} to {RUN_MIN}).",
        where="sim",
        parts=parts,
        figures=save_figure(_figure(runs), folder, "drs-D3"),
        numbers={
            "after_s": {
                f"{app} {written(start)}": spread([run.mean_s(since) for run in here]).pair
                for (app, start), here in runs.items()
            },
        },
    )


def _figure(runs: dict[tuple[str, tuple[int, int, int]], list[Run]]) -> Figure:
    apps = list(dict.fromkeys(app for app, _ in runs))
    figure = Figure(figsize=(4.5 * len(apps), 3.4))
    for number, app in enumerate(apps):
        axes = figure.add_subplot(1, len(apps), number + 1)
        for (name, start), here in runs.items():
            if name == app:
                latency_ms = 1e3 * np.mean([run.latency_s for run in here], axis=0)
                axes.plot(np.arange(1, len(latency_ms) + 1), latency_ms, label=written(start))
        axes.axvline(T_RA_MIN, color="grey", linestyle=":")
        axes.set_yscale("log")
        axes.set_xlabel("minute")
        axes.set_ylabel("mean sojourn time (ms)")
        axes.set_title(app)
        axes.legend(fontsize=7)
    figure.subplots_adjust(wspace=0.3)
    return figure
