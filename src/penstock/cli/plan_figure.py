"""The figure of `penstock plan`: how far the replay can be trusted, and what each choice costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import InvalidInput

if TYPE_CHECKING:
    from penstock.model.observation import Observation
    from penstock.sim.replay import Candidate


def save(
    out: Path,
    recorded: Sequence[Observation],
    replayed: Sequence[Observation],
    found: Sequence[Candidate],
    max_latency_s: float,
) -> list[Path]:
    """Write plan.png and plan.svg to a folder."""
    figure = draw(recorded, replayed, found, max_latency_s)
    try:
        out.mkdir(parents=True, exist_ok=True)
        paths = [out / "plan.png", out / "plan.svg"]
        for path in paths:
            figure.savefig(path, dpi=120)
    except OSError as error:
        raise InvalidInput(f"--out is {str(out)!r}: {error.strerror}; give a folder.") from error
    return paths


def draw(
    recorded: Sequence[Observation],
    replayed: Sequence[Observation],
    found: Sequence[Candidate],
    max_latency_s: float,
) -> Any:
    """Latency as recorded and replayed, and each candidate by its cost and its late results."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.5), layout="constrained")
    over_time, costs = figure.subplots(1, 2)
    for label, observations, style in (("recorded", recorded, "-"), ("replayed", replayed, "--")):
        points = [(o.at_s, o.latency.mean_s) for o in observations if o.latency is not None]
        start_s = observations[0].at_s - observations[0].period_s
        over_time.plot([t - start_s for t, _ in points], [v for _, v in points], style, label=label)
    over_time.set(title="the run as it was", xlabel="seconds", ylabel="mean latency in s")
    over_time.legend()
    for c in found:
        static = c.name.startswith("static")
        colour = "tab:gray" if static else "tab:blue"
        late = 100 * (1 - c.in_time_share)
        costs.scatter(c.executor_seconds, late, color=colour, marker="s" if static else "o")
        costs.annotate(
            c.name, (c.executor_seconds, late), xytext=(5, 4), textcoords="offset points",
            fontsize=8, color=colour,
        )  # fmt: skip
    costs.axhline(5, color="tab:red", linewidth=0.8)
    costs.set(
        title=f"policies and sizes, bound {max_latency_s:g} s", xlabel="executor-seconds",
        ylabel="% of results late",
    )  # fmt: skip
    costs.set_ylim(bottom=-2)
    for axis in (over_time, costs):
        axis.grid(alpha=0.3)
    over_time.set_ylim(bottom=0)
    return figure
