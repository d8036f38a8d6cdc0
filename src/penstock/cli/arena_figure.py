"""The figure of `penstock arena`: for each load, share in time against executor-seconds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import InvalidInput
from penstock.sim.arena import dominated_by

if TYPE_CHECKING:
    from penstock.sim.arena import Contest

COLUMNS = 3
LEAST_LATE = 1e-4  # below it, points of the figure are at its edge


def save(path: Path, contests: Sequence[Contest]) -> None:
    """Write the figure to a file."""
    figure = draw(contests)
    try:
        figure.savefig(path, dpi=120)
    except OSError as error:
        raise InvalidInput(f"--plot is {str(path)!r}: {error.strerror}.") from error


def draw(contests: Sequence[Contest]) -> Any:
    """A pair of axes for each load; up and to the left is better."""
    from matplotlib.figure import Figure

    columns = min(COLUMNS, len(contests))
    rows = math.ceil(len(contests) / columns)
    figure = Figure(figsize=(5.2 * columns, 4.2 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis, contest in zip(axes, contests, strict=False):
        _draw_load(axis, contest)
    for axis in axes[len(contests) :]:
        axis.set_visible(False)
    return figure


def _draw_load(axis: Any, contest: Contest) -> None:
    scenario, references = contest.scenario, contest.references
    names = ("clairvoyant", f"static {references.static_min_executors}",
             f"static {scenario.cluster.max_executors}")  # fmt: skip
    points = [(n, s, "tab:gray", "s") for n, s in zip(names, references.scores, strict=True)]
    for score in contest.scores:
        beaten = dominated_by(score, (*contest.scores, *references.scores[1:]))
        points.append((score.policy, score, "tab:orange" if beaten else "tab:blue", "o"))
    for name, score, colour, marker in points:
        place = (contest.ratio(score), max(LEAST_LATE, 1 - score.in_time_share))
        axis.scatter(*place, color=colour, marker=marker)
        axis.annotate(
            name, place, xytext=(5, 4), textcoords="offset points", fontsize=8, color=colour
        )
    axis.axhline(1 - scenario.share, color="tab:red", linewidth=0.8)
    axis.margins(x=0.18)  # room for names
    axis.set_yscale("log")
    axis.set_ylim(1.0, LEAST_LATE / 1.5)
    axis.yaxis.set_major_formatter(lambda late, _: f"{100 * (1 - late):g}%")
    axis.set(
        title=f"{scenario.name} (orange: dominated)",
        xlabel="executor-seconds over the clairvoyant's",
        ylabel=f"in time, within {scenario.max_latency_s:g} s",
    )
    axis.grid(alpha=0.3)
