"""R4 (s. 6.4.4): what routing costs a row above the baselines."""

from pathlib import Path

from matplotlib.figure import Figure

from experiments.claim import Claim, judged, save_figure
from experiments.routing.trials.overhead import (
    SENT,
    Overhead,
    frequency_aware_overheads,
    rate_aware_overheads,
)
from experiments.statistics import spread

PAPER = (
    "Per-tuple cost: frequency-aware about 17% over plain hashing, rate-aware panes about 4% over "
    "round robin."
)
BOUNDS = {"frequency-aware": 0.17, "rate-aware panes": 0.04}
ZIPF = 1.5
REPEATS, QUICK_REPEATS = 40, 3


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """Both routes beside their baselines, timed in turn on the pure code."""
    repeats = QUICK_REPEATS if quick else REPEATS
    found: dict[str, list[Overhead]] = {}
    for seed in seeds:
        for kind in ("int64", "text"):
            for one in frequency_aware_overheads(ZIPF, kind, seed, repeats):
                found.setdefault(f"frequency-aware, {kind}, {one.what}", []).append(one)
        for one in rate_aware_overheads(seed, repeats):
            found.setdefault(f"rate-aware panes, {one.what}", []).append(one)
    extra = {name: spread(one.extra for one in some) for name, some in found.items()}
    cost = {
        name: spread(one.ours_ns - one.plain_ns for one in some) for name, some in found.items()
    }
    figure = Figure(figsize=(8, 4))
    axes = figure.subplots()
    names = list(extra)
    axes.barh(names, [cost[n].mean for n in names], xerr=[cost[n].deviation for n in names])
    axes.set_xlabel("ns a row above the baseline")
    axes.invert_yaxis()
    shown = "; ".join(f"{n} {extra[n]:.1%} ({cost[n]:.1f} ns a row)" for n in names)
    return judged(
        "R4",
        paper=PAPER,
        ours=f"Zipf {ZIPF}, pure code: {shown}.",
        where="pure",
        parts={
            f"{name} at most {bound:.0%}": extra[name].mean <= bound
            for name in names
            for method, bound in BOUNDS.items()
            if name.startswith(method) and name.endswith(SENT)
        },
        why="Gathering and writing a row to an Arrow stream takes few nanoseconds here, so what "
        "routing adds weighs more than in the paper's splitter, which handles rows one by one; "
        "of what it adds, a part is that rows spread over more nodes are more pieces to write. "
        "The lanes on Spark, where a row costs more, are measured apart.",
        figures=save_figure(figure, folder, "routing-R4"),
        numbers={
            "extra": {n: extra[n].pair for n in names},
            "extra_ns": {n: cost[n].pair for n in names},
        },
    )
