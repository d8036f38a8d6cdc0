"""L1 (Fig. 2 to 4): load distance against Flux."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from experiments.allocation.workloads.clusters import fluctuating
from experiments.claim import Claim, judged, save_figure
from experiments.statistics import spread
from penstock.allocation.budget import SearchBudget
from penstock.allocation.flux import flux
from penstock.allocation.problem import Floats, distance
from penstock.allocation.solver import solve

SIZES = ((20, 400), (40, 800), (60, 1200))
BUDGETS = (5, 10, 20, 50)
VARIES = (10, 20, 40)
SEARCH_WORK = 6e6  # a fraction of a second each
WORKS = (1e3, 1e4, 1e5, 3e5, 1e6, 3e6, 1e7)


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """Ours is below Flux wherever Flux is not already proven best."""
    sizes = SIZES[:1] if quick else SIZES
    budgets = BUDGETS[1:3] if quick else BUDGETS
    varied = VARIES[1:2] if quick else VARIES
    shape = (len(sizes), len(budgets), len(varied), len(seeds))
    ours, fluxes, bounds = (np.empty(shape) for _ in range(3))
    for index in np.ndindex(shape):
        (nodes, groups), most = sizes[index[0]], budgets[index[1]]
        problem = fluctuating(nodes, groups // nodes, varied[index[2]], most, seeds[index[3]])
        work = 1e6 if quick else SEARCH_WORK
        found = solve(problem, SearchBudget(work), np.random.default_rng(seeds[index[3]]))
        ours[index], bounds[index] = found.distance.load_distance, found.bound
        fluxes[index] = distance(problem, flux(problem)).load_distance
    improvable = fluxes.mean(axis=3) > bounds.mean(axis=3) + 0.01
    below = ours.mean(axis=3) < fluxes.mean(axis=3) - 1e-6
    gap = ours - bounds
    curves = {nodes: _over_time(nodes, groups, seeds, quick) for nodes, groups in sizes}
    return judged(
        "L1",
        paper="load distance below Flux's after a few seconds, for three sizes and several budgets",
        ours=f"below Flux in {int((below & improvable).sum())} of {int(improvable.sum())} settings "
        f"where the bound leaves room, above in {int((ours > fluxes + 1e-6).sum())} of {ours.size} "
        f"runs; distance to the bound {spread(gap.ravel()):.3f}, at most {gap.max():.3f}; on "
        f"average ours {ours.mean():.2f}, Flux {fluxes.mean():.2f}",
        where="pure",
        parts={
            "below Flux wherever the bound leaves room": bool(np.all(below[improvable])),
            "never above Flux": bool(np.all(ours <= fluxes + 1e-6)),
        },
        figures=(
            *_figure(folder, sizes, budgets, (ours, fluxes, bounds)),
            *_time_figure(folder, curves),
        ),
        numbers={
            "runs": ours.size,
            "mean_gap": float(gap.mean()),
            "max_gap": float(gap.max()),
            "over_time": {
                f"{nodes} nodes": [
                    {"seconds": p.seconds, "ours": p.ours, "flux": p.flux, "bound": p.bound}
                    for p in points
                ]
                for nodes, points in curves.items()
            },
        },
    )


@dataclass(frozen=True)
class Point:
    """Load distances after some solving; means over seeds."""

    seconds: float
    ours: float
    flux: float
    bound: float


def _over_time(nodes: int, groups: int, seeds: tuple[int, ...], quick: bool) -> list[Point]:
    """What more time to solve buys, at 20 migrations: the curves of Fig. 2 to 4."""
    points = []
    for work in WORKS[::3] if quick else WORKS:
        found = []
        for seed in seeds:
            problem = fluctuating(nodes, groups // nodes, 20, 20, seed)
            began_s = time.perf_counter()
            solved = solve(problem, SearchBudget(work), np.random.default_rng(seed))
            took_s = time.perf_counter() - began_s
            rival = distance(problem, flux(problem)).load_distance
            found.append((took_s, solved.distance.load_distance, rival, solved.bound))
        points.append(Point(*np.mean(found, axis=0).tolist()))
    return points


def _time_figure(folder: Path, curves: Mapping[int, list[Point]]) -> tuple[str, ...]:
    figure = Figure(figsize=(4 * len(curves), 3.2))
    axes = figure.subplots(1, len(curves), squeeze=False)[0]
    for axis, (nodes, points) in zip(axes, curves.items(), strict=True):
        seconds = [point.seconds for point in points]
        axis.plot(seconds, [point.ours for point in points], marker="o", label="ours")
        axis.plot(seconds, [point.flux for point in points], label="Flux")
        axis.plot(seconds, [point.bound for point in points], "--", label="bound")
        axis.set(title=f"{nodes} nodes", xlabel="solving, s", xscale="log")
    axes[0].set_ylabel("load distance, points")
    axes[0].legend()
    return save_figure(figure, folder, "allocation-L1-time")


def _figure(
    folder: Path,
    sizes: Sequence[tuple[int, int]],
    budgets: Sequence[int],
    found: tuple[Floats, Floats, Floats],
) -> tuple[str, ...]:
    figure = Figure(figsize=(4 * len(sizes), 3.2))
    axes = figure.subplots(1, len(sizes), squeeze=False)[0]
    for panel, (nodes, groups) in enumerate(sizes):
        for name, values in zip(("ours", "Flux", "bound"), found, strict=True):
            runs = values[panel].reshape(len(budgets), -1)
            axes[panel].errorbar(
                budgets, runs.mean(axis=1), yerr=runs.std(axis=1), label=name, capsize=3
            )
        axes[panel].set(title=f"{nodes} nodes, {groups} key groups", xlabel="migrations allowed")
    axes[0].set_ylabel("load distance, points")
    axes[0].legend()
    return save_figure(figure, folder, "allocation-L1")
