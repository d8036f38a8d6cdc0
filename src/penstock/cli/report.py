"""A run as one page that can be kept and sent: report.html, with nothing to fetch."""

from __future__ import annotations

import html
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.cli.output import one_line
from penstock.cli.plotting import MISSING, can_plot
from penstock.model.number_text import seconds_text, share_text
from penstock.model.promised_quantile import promised_quantile

if TYPE_CHECKING:
    from penstock.control.step import Step
    from penstock.control.summary import RunSummary
    from penstock.model.observation import Observation

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color-scheme: light dark; }
svg { width: 100%; height: auto; background: white; }
td { padding: .2rem 1rem .2rem 0; } td + td { text-align: right; }
li { font-family: ui-monospace, monospace; font-size: .85rem; }
"""


def write_report(path: Path, title: str, steps: Sequence[Step], summary: RunSummary) -> None:
    """Write the page: the figures, the plots, and every decision with its reasons."""
    observations = [step.observation for step in steps if step.observation is not None]
    rows = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{html.escape(value)}</td></tr>"
        for name, value in _figures(summary)
    )
    decisions = "".join(f"<li>{html.escape(one_line(line))}</li>" for line in summary.decisions)
    first = summary.earlier_decisions + 1
    plots = f"<p>{html.escape(MISSING)}</p>"
    if can_plot():
        plots = _svg(draw(observations, steps, summary))
    path.write_text(
        f"<!doctype html><html lang='en'><meta charset='utf-8'>"
        f"<meta name='viewport' content='width=device-width'>"
        f"<title>{html.escape(title)}</title><style>{STYLE}</style>"
        f"<h1>{html.escape(title)}</h1><table>{rows}</table>"
        f"{plots}"
        f"<h2>Decisions</h2><ol start='{first}'>{decisions or '<li>none</li>'}</ol></html>\n",
        encoding="utf-8",
    )


def _figures(summary: RunSummary) -> list[tuple[str, str]]:
    return [
        ("rows", f"{summary.results:,}"),
        *([("rows shed", f"{summary.shed_rows:,}")] if summary.shed_rows else []),
        (f"within {summary.max_latency_s:g} s", share_text(summary.in_time_share)),
        ("mean latency", seconds_text(summary.latency_mean_s)),
        ("start-up, not in these", f"{summary.startup_s:.0f} s, {summary.startup_results:,} rows"),
        ("executor-seconds", f"{summary.executor_seconds:.0f}"),
        ("static minimum would use", f"{summary.static_min_executor_seconds:.0f}"),
        ("static maximum would use", f"{summary.static_max_executor_seconds:.0f}"),
        ("reconfigurations", str(summary.reconfigurations)),
    ]


def draw(observations: Sequence[Observation], steps: Sequence[Step], summary: RunSummary) -> Any:
    """Load, latency against the bound, and executors over time, as a matplotlib figure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 7), layout="constrained")
    load, latency, executors = figure.subplots(3, 1, sharex=True)
    start_s = observations[0].at_s - observations[0].period_s if observations else 0.0
    at = [o.at_s - start_s for o in observations]
    load.plot(at, [o.arrival_rate_per_s for o in observations], color="tab:blue")
    load.set_ylabel("rows/s arriving")
    points = [(o.at_s - start_s, o.latency) for o in observations if o.latency is not None]
    times, seen = [t for t, _ in points], [x for _, x in points]
    latency.plot(times, [x.mean_s for x in seen], label="mean")
    name, kept_s = promised_quantile(seen, summary.share)
    latency.plot(times, kept_s, label=name, linestyle=":")
    latency.axhline(summary.max_latency_s, color="tab:red", label="bound")
    latency.set_ylabel("latency in s")
    latency.legend(loc="upper right")
    executors.step(at, [len(o.nodes) for o in observations], where="pre", color="tab:green")
    for step in steps:
        if step.changes:
            executors.axvline(step.at_s - start_s, color="gray", linewidth=0.6, linestyle="--")
    executors.set_ylabel("executors")
    executors.set_xlabel("seconds")
    for axis in (load, latency, executors):
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
    return figure


def _svg(figure: Any) -> str:
    stream = io.StringIO()
    figure.savefig(stream, format="svg")
    text = stream.getvalue()
    return text[text.index("<svg") :]
