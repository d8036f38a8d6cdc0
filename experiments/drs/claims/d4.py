"""D4 (Fig. 9): re-allocations follow changes of the load, sooner with a shorter window."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from experiments.claim import Claim, judged, save_figure
from experiments.drs.trials.rescaling import (
    FIRST,
    LONG_TERM,
    SHORT_TERM,
    T_MAX_S,
    T_MIN_S,
    Run,
    followed,
)
from experiments.drs.workloads.applications import VLD_LIGHT_S, written
from experiments.statistics import spread

WINDOWS = (6, 3)
BULK = 4  # tuples that a frame's features come in: the text says that they come in bulk


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """Re-allocations follow changes of the load, sooner with a shorter window."""
    del quick  # these runs take a fraction of a second each
    patterns = {"long": LONG_TERM, "short": SHORT_TERM}
    runs = {
        (name, window): [followed(phases, window, seed, BULK) for seed in seeds]
        for name, phases in patterns.items()
        for window in WINDOWS
    }
    counts = {key: [len(run.changes) for run in here] for key, here in runs.items()}
    reaction = {w: [_reaction_min(run, LONG_TERM) for run in runs["long", w]] for w in WINDOWS}
    fewer = {w: [_fewer(run) for run in runs["long", w]] for w in WINDOWS}
    parts = {
        "three re-allocations with w=6": all(n == 3 for n in counts["long", 6]),
        "the load that falls at minute 21 brings a scale-in": all(n > 0 for n in fewer[6]),
        "w=3 reacts sooner to a rise": bool(np.mean(reaction[3]) < np.mean(reaction[6])),
        "a burst triggers none with w=6": all(n == 0 for n in counts["short", 6]),
        "a burst triggers two with w=3": all(n == 2 for n in counts["short", 3]),
    }
    shown = ", ".join(f"{name} w={window}: {spread(counts[name, window])}" for name, window in runs)
    single = {
        f"{name} w={window}": [len(followed(phases, window, seed).changes) for seed in seeds]
        for name, phases in patterns.items()
        for window in WINDOWS
    }
    extract_s, match_s, _ = VLD_LIGHT_S
    why = (
        " The printed numbers do not fit one load: 4:6:1 at 12 frames/s and 3:3:1 at 6 (Fig. 10) "
        f"need a frame to take {extract_s:g} s and {match_s:g} s of service. As one tuple, no "
        f"frame is ever done within T_min = {T_MIN_S:g} s, so nothing is given back; in "
        f"{BULK} tuples, matched side by side, every allocation that keeps up is below it at 6 "
        f"frames/s, so what was given is taken back after each T_ra. The extractor of "
        f"{written(FIRST)} is loaded to {12 * extract_s / FIRST[0]:.0%} by 12 frames/s, so the "
        "sojourn time passes T_max before the window holds the new rate, and a second "
        "re-allocation finishes what the first could not see."
    )
    return judged(
        "D4",
        paper="Input of 6, 12, 6 and 18 frames/s: three re-allocations with w=6, sooner with w=3; "
        "a burst of three minutes triggers none with w=6 and two with w=3.",
        ours=f"Re-allocations: {shown}; first one after a rise with w=6 {spread(reaction[6])} min, "
        f"with w=3 {spread(reaction[3])} min.",
        where="sim",
        parts=parts,
        why=why,
        figures=save_figure(_figure(runs), folder, "drs-D4"),
        numbers={
            "reallocations": {f"{name} w={w}": spread(n).pair for (name, w), n in counts.items()},
            "reallocations_of_single_tuples": {n: spread(c).pair for n, c in single.items()},
            "reaction_min": {f"w={w}": spread(minutes).pair for w, minutes in reaction.items()},
        },
    )


def _reaction_min(run: Run, phases: Sequence[tuple[int, float]]) -> float:
    """Mean minutes from a rise to the first re-allocation after it."""
    waits, at, before = list[float](), 0, phases[0][1]
    for minutes, rate in phases:
        later = [change for change in run.changes if change >= at]
        if rate > before:
            waits.append(float(later[0] - at if later else minutes))
        at, before = at + minutes, rate
    return float(np.mean(waits))


def _fewer(run: Run) -> int:
    """Re-allocations that gave processors back."""
    return sum(sum(run.allocations[at]) < sum(run.allocations[at - 1]) for at in run.changes)


def _figure(runs: dict[tuple[str, int], list[Run]]) -> Figure:
    figure = Figure(figsize=(10, 5))
    for number, ((name, window), here) in enumerate(runs.items()):
        axes = figure.add_subplot(2, 2, 1 + number // 2 + 2 * (number % 2))
        latency_ms = 1e3 * np.mean([run.latency_s for run in here], axis=0)
        axes.plot(np.arange(1, len(latency_ms) + 1), latency_ms)
        for change in here[0].changes:
            axes.axvline(change, color="grey", linestyle=":")
        axes.axhline(1e3 * T_MAX_S, color="red", linewidth=0.7)
        axes.axhline(1e3 * T_MIN_S, color="green", linewidth=0.7)
        axes.set_yscale("log")
        axes.set_title(f"{name}-term change, w = {window}; dotted: re-allocations", fontsize=8)
        axes.set_xlabel("minute")
        axes.set_ylabel("sojourn time (ms)")
    figure.subplots_adjust(hspace=0.5, wspace=0.25)
    return figure
