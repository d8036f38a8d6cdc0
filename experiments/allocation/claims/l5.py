"""L5 (Fig. 10 and 11): ALBIC against COLA by how much collocation can be had."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from experiments.allocation.trials.pipeline import Outcome, run
from experiments.claim import Claim, judged, save_figure
from experiments.statistics import Spread, spread

SIZES = ((20, 400, 10), (40, 800, 20), (60, 1200, 30))
FACTORS = (0, 25, 50, 75, 100)


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """Five shares of traffic that can be collocated, and three sizes."""
    middle = SIZES[0] if quick else SIZES[1]
    factors = (50,) if quick else FACTORS
    settings = [(middle, factor) for factor in factors]
    if not quick:
        settings += [(SIZES[0], 50), (SIZES[2], 50)]
    found = {
        setting: [run(*setting[0], setting[1], seed) for seed in seeds] for setting in settings
    }
    closer = [
        _over(found[s], 0, "load_distance").mean < _over(found[s], 1, "load_distance").mean
        for s in found
    ]
    more = [
        _over(found[s], 0, "collocation").mean - _over(found[s], 1, "collocation").mean
        for s in found
    ]
    lines = [_line(*setting, outcomes) for setting, outcomes in found.items()]
    behind = sum(gain <= -1.0 for gain in more)
    parts = {
        "load distance below COLA's in every setting": all(closer),
        "collocation at most a point behind in every setting": behind == 0,
        "more collocation in some setting": max(more) > 0,
    }
    why = (
        f"ALBIC's load distance is lower in {sum(closer)} of {len(closer)} settings; its "
        f"collocation is more than a point behind in {behind} of {len(more)}."
    )
    return judged(
        "L5",
        paper="lower load distance than COLA, up to 10 points more collocation, at all sizes",
        ours="ALBIC against COLA: " + "; ".join(lines),
        where="pure",
        parts=parts,
        why=why,
        figures=_figure(folder, middle, factors, found),
        numbers={"collocation_gain_points": more},
    )


def _over(outcomes: Sequence[tuple[Outcome, Outcome]], who: int, what: str) -> Spread:
    return spread(getattr(outcome[who], what) for outcome in outcomes)


def _line(
    size: tuple[int, int, int], factor: int, outcomes: Sequence[tuple[Outcome, Outcome]]
) -> str:
    parts = []
    for what, unit in (
        ("load_distance", "points"), ("collocation", "%"), ("all_traffic", "% of all traffic"),
    ):  # fmt: skip
        shown = " against ".join(f"{_over(outcomes, who, what):.1f}" for who in (0, 1))
        parts.append(f"{shown} {unit}")
    return f"{size[0]} nodes, factor {factor}: " + ", ".join(parts)


def _figure(
    folder: Path,
    size: tuple[int, int, int],
    factors: Sequence[int],
    found: dict[tuple[tuple[int, int, int], int], list[tuple[Outcome, Outcome]]],
) -> tuple[str, ...]:
    figure = Figure(figsize=(8, 3.2))
    for axis, what, unit in zip(
        figure.subplots(1, 2), ("load_distance", "collocation"), ("points", "%"), strict=True
    ):
        for who, name in enumerate(("ALBIC", "COLA")):
            values = [_over(found[(size, factor)], who, what) for factor in factors]
            axis.errorbar(
                factors, [v.mean for v in values], yerr=[v.deviation for v in values],
                label=name, capsize=3,
            )  # fmt: skip
        axis.set(xlabel="obtainable collocation, %", ylabel=f"{what.replace('_', ' ')}, {unit}")
        axis.legend()
    return save_figure(figure, folder, "allocation-L5")
