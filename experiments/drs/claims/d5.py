"""D5 (Table II): one decision takes no longer than the paper's."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from experiments.claim import Claim, judged, save_figure
from experiments.drs.trials.overhead import Timing, decision_ms, measuring_ms, timings

REPEATS, QUICK_REPEATS = 2_000, 50


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """One decision takes no longer than the paper's."""
    del seeds
    repeats = QUICK_REPEATS if quick else REPEATS
    found, whole_ms, read_ms = timings(repeats), decision_ms(repeats), measuring_ms(repeats)
    parts = {f"K_max = {one.k_max}": one.ours_ms <= one.paper_ms for one in found}
    return judged(
        "D5",
        paper="One decision takes "
        + ", ".join(f"{one.paper_ms:g} ms at K_max {one.k_max}" for one in found)
        + ".",
        ours=", ".join(f"{one.ours_ms:.3f} ms at {one.k_max}" for one in found)
        + " (AssignProcessors of three operators on this machine); a whole decision over 60 "
        f"periods {whole_ms:.2f} ms, and reading a new period {read_ms:.3f} ms.",
        where="pure",
        parts=parts,
        figures=save_figure(_figure(found), folder, "drs-D5"),
        numbers={
            "ours_ms": {str(one.k_max): one.ours_ms for one in found},
            "whole_decision_ms": whole_ms,
            "measuring_ms": read_ms,
            "paper_ms": {str(one.k_max): one.paper_ms for one in found},
        },
    )


def _figure(found: Sequence[Timing]) -> Figure:
    figure = Figure(figsize=(4.5, 3.4))
    axes = figure.add_subplot()
    axes.loglog([one.k_max for one in found], [one.paper_ms for one in found], "o-", label="paper")
    axes.loglog([one.k_max for one in found], [one.ours_ms for one in found], "s-", label="ours")
    axes.set_xlabel("K_max")
    axes.set_ylabel("one decision (ms)")
    axes.legend(fontsize=7)
    return figure
