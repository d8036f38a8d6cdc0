"""L3 (Fig. 6 and 7): ours stays below 1 point, Flux fluctuates, PoTC is inconsistent."""

from collections.abc import Mapping
from pathlib import Path

from matplotlib.figure import Figure

from experiments.allocation.trials.edits import FULL, QUICK, by_solver, course, potc_distances
from experiments.claim import Claim, judged, save_figure
from experiments.statistics import spread
from penstock.allocation.flux import flux

MAX_MIGRATIONS = 13


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """Our solver, Flux and PoTC over the periods of job 1."""
    count, work = QUICK if quick else FULL
    ours = [course(count, seed, MAX_MIGRATIONS, by_solver(seed, work)) for seed in seeds]
    by_flux = [course(count, seed, MAX_MIGRATIONS, flux) for seed in seeds]
    by_potc = [potc_distances(count, seed) for seed in seeds]
    figure = Figure(figsize=(8, 3.2))
    left, right = figure.subplots(1, 2)
    for name, values in (
        ("ours", ours[0].distances), ("Flux", by_flux[0].distances), ("PoTC", by_potc[0]),
    ):  # fmt: skip
        left.plot(values, label=name)
    right.plot(ours[0].migrations, label="ours")
    right.plot(by_flux[0].migrations, label="Flux")
    left.set(xlabel="period", ylabel="load distance, points")
    right.set(xlabel="period", ylabel="migrations")
    left.legend()
    distances = {
        "ours": [one.distances for one in ours],
        "Flux": [one.distances for one in by_flux],
        "PoTC": by_potc,
    }
    highest = {name: [float(run.max()) for run in runs] for name, runs in distances.items()}
    means = {name: spread(run.mean() for run in runs) for name, runs in distances.items()}
    parts = {
        "ours below 1 point in every period": max(highest["ours"]) < 1.0,
        "Flux higher than ours in every run": _above(highest, "Flux"),
        "PoTC higher than ours in every run": _above(highest, "PoTC"),
    }
    return judged(
        "L3",
        paper="stays below 1%; Flux fluctuates up to 7%; PoTC inconsistent, merging is unbalanced",
        ours="load distance in points, "
        + "; ".join(
            f"{name}: mean {means[name]:.2f}, highest {spread(highest[name]):.2f}" for name in means
        ),
        where="pure",
        parts=parts,
        figures=save_figure(figure, folder, "allocation-L3"),
        numbers=highest,
    )


def _above(highest: Mapping[str, list[float]], name: str) -> bool:
    return all(a > b for a, b in zip(highest[name], highest["ours"], strict=True))
