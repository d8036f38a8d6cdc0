"""L2 (Fig. 5): ten of sixty nodes leave while one or five others are overloaded."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from experiments.allocation.trials.scale_in import GOOD_DISTANCE, course, overloaded_cluster
from experiments.claim import Claim, judged, save_figure
from experiments.statistics import spread


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """Scale-in integrated with balancing, and before it."""
    nodes, leaving = (20, 3) if quick else (60, 10)
    figure = Figure(figsize=(8, 3.2))
    axes = figure.subplots(1, 2)
    good: dict[str, list[int]] = {}
    relieved: dict[str, list[int]] = {}
    drained: dict[str, list[int]] = {}
    for panel, overloaded in enumerate((1, 5)):
        for name in ("integrated", "scale-in first"):
            courses = [
                course(overloaded_cluster(nodes, leaving, overloaded, seed), name, seed)
                for seed in seeds
            ]
            key = f"{overloaded}OL {name}"
            good[key] = [course.good_after for course in courses]
            relieved[key] = [course.relieved_after for course in courses]
            drained[key] = [course.drained_after for course in courses]
            axes[panel].plot(courses[0].distances, label=name)
        axes[panel].set(title=f"{overloaded} overloaded", xlabel="round")
    axes[0].set_ylabel("load distance, points")
    axes[0].legend()
    parts = {
        f"{n} overloaded: a good distance sooner in every run": max(good[f"{n}OL integrated"])
        < min(good[f"{n}OL scale-in first"])
        for n in (1, 5)
    } | {
        f"{n} overloaded: drained in at most half as long again": bool(
            np.mean(drained[f"{n}OL integrated"]) <= 1.5 * np.mean(drained[f"{n}OL scale-in first"])
        )
        for n in (1, 5)
    }
    lines = [
        f"{key}: good after {spread(good[key]):.1f} rounds, overload gone after "
        f"{np.mean(relieved[key]):.1f}, drained after {spread(drained[key]):.1f}"
        for key in good
    ]
    return judged(
        "L2",
        paper="integrated scale-in is well balanced far sooner, and done in about the same time",
        ours=f"distance below {GOOD_DISTANCE:g} points for good; " + "; ".join(lines),
        where="pure",
        parts=parts,
        figures=save_figure(figure, folder, "allocation-L2"),
        numbers={"good_after": good, "relieved_after": relieved, "drained_after": drained},
    )
