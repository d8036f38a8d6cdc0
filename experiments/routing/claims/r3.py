"""R3 (Fig. 13): keys relocated, and partial results, when the number of nodes changes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments.claim import Claim, judged, save_figure
from experiments.routing.trials.balance import (
    QUICK_ROWS,
    ROWS,
    RelocationRun,
    relocation_run,
)
from experiments.statistics import Spread, spread

ZIPF = 1.0
CHANGES, QUICK_CHANGES = 20, 6


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """Node counts that follow a trend, under plain hashing and ours."""
    changes, rows = (QUICK_CHANGES, QUICK_ROWS) if quick else (CHANGES, ROWS)
    runs = [relocation_run(seed, changes, ZIPF, rows) for seed in seeds]

    def over(column: Callable[[RelocationRun], Any]) -> Spread:
        # A period in which the number of nodes stayed relocates nothing under either.
        return spread(float(column(r)[np.diff(r.nodes) != 0].mean()) for r in runs)

    plain, ours = over(lambda r: r.plain_moved), over(lambda r: r.ours_moved)
    merged, our_merged = over(lambda r: r.plain_merged), over(lambda r: r.ours_merged)
    most = spread(float(r.ours_moved.max()) for r in runs)
    figure = Figure(figsize=(9, 4))
    moved, merges = figure.subplots(1, 2)
    for axes, one, two, label in (
        (moved, 100 * runs[0].plain_moved, 100 * runs[0].ours_moved, "keys relocated, %"),
        (merges, runs[0].plain_merged, runs[0].ours_merged, "partial results a window"),
    ):
        axes.plot(one, label="plain hashing")
        axes.plot(two, label="ours")
        axes.set_xlabel("change of the number of nodes")
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
        axes.legend()
    return judged(
        "R3",
        paper="With 4 to 32 nodes, plain hashing relocates almost all keys at each change, ours "
        "far fewer, and the load on merge nodes is lower.",
        ours=f"Relocated at a change: plain {plain:.1%}, ours {ours:.1%} (at most {most:.1%}); "
        f"partial results to merge in a window: plain {merged:.0f}, ours {our_merged:.0f}.",
        where="sim",
        parts={
            "plain relocates almost all (over 80%)": plain.mean > 0.8,
            "ours far fewer (under half of plain)": ours.mean < plain.mean / 2,
            "fewer partial results to merge": our_merged.mean < merged.mean,
        },
        figures=save_figure(figure, folder, "routing-R3"),
        numbers={
            "plain_moved": plain.pair, "ours_moved": ours.pair,
            "plain_merged": merged.pair, "ours_merged": our_merged.pair,
        },
    )  # fmt: skip
