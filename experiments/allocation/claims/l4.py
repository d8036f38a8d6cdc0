"""L4 (Fig. 8 and 9): what a limit on migrations costs in balance and saves in latency."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from experiments.allocation.claims.l3 import MAX_MIGRATIONS
from experiments.allocation.trials.edits import FULL, QUICK, by_solver, course
from experiments.claim import Claim, judged, save_figure
from experiments.statistics import spread

LATENCY_PER_MIGRATION_S = 2.5  # s. 5.2.2


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """Our solver with three limits on migrations."""
    count, work = QUICK if quick else FULL
    limits = {"10": 10.0, "13": MAX_MIGRATIONS, "unlimited": np.inf}
    found = {
        name: [course(count, seed, most, by_solver(seed, work)) for seed in seeds]
        for name, most in limits.items()
    }
    figure = Figure(figsize=(8, 3.2))
    left, right = figure.subplots(1, 2)
    for name, courses in found.items():
        left.plot(courses[0].distances, label=name)
        right.plot(courses[0].migrations * LATENCY_PER_MIGRATION_S, label=name)
    left.set(xlabel="period", ylabel="load distance, points")
    right.set(xlabel="period", ylabel="migration latency, s")
    left.legend()
    mean = {name: [one.distances.mean() for one in runs] for name, runs in found.items()}
    spike = {name: [one.distances.max() for one in runs] for name, runs in found.items()}
    latency_s = {
        name: [one.migrations.mean() * LATENCY_PER_MIGRATION_S for one in runs]
        for name, runs in found.items()
    }
    limited = ("10", "13")
    parts = {
        "unlimited migrations balance best": all(
            _all_below(mean["unlimited"], mean[name]) for name in limited
        ),
        "they cost most latency": all(
            _all_below(latency_s[name], latency_s["unlimited"]) for name in limited
        ),
        "a limit of 10 has higher spikes": _all_below(spike["unlimited"], spike["10"]),
    }
    return judged(
        "L4",
        paper="unlimited migrations balance best and cost most latency; a limit of 10 has spikes",
        ours="; ".join(
            f"{name}: mean distance {spread(mean[name]):.3f}, highest {np.mean(spike[name]):.2f}, "
            f"latency {np.mean(latency_s[name]):.0f} s a period"
            for name in found
        ),
        where="pure",
        parts=parts,
        figures=save_figure(figure, folder, "allocation-L4"),
        numbers={"latency_s": {name: spread(values).pair for name, values in latency_s.items()}},
    )


def _all_below(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    return all(a < b for a, b in zip(ours, theirs, strict=True))
