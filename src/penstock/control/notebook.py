"""How a run looks in a notebook: its figures as a table, its course as two small charts."""

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape

from penstock.control.step import Step
from penstock.control.summary import RunSummary
from penstock.model.number_text import seconds_text, share_text
from penstock.model.promised_quantile import promised_quantile

WIDTH, HEIGHT, MARGIN = 360, 60, 4
MOST_LINES = 5  # of decisions


def summary_html(summary: RunSummary) -> str:
    """What a run came to."""
    bound = f"within {summary.max_latency_s:g} s"
    rows = [
        ("lasted", f"{summary.duration_s:.0f} s, {summary.results:,} rows"),
        ("in time", f"{share_text(summary.in_time_share)} {bound}"),
        ("latency", f"mean {seconds_text(summary.latency_mean_s)}, "
                    f"worst {seconds_text(summary.latency_max_s)}"),
        ("executor-seconds", f"{summary.executor_seconds:.0f} (always fewest "
                             f"{summary.static_min_executor_seconds:.0f}, always most "
                             f"{summary.static_max_executor_seconds:.0f})"),
        ("changes", str(summary.reconfigurations)),
    ]  # fmt: skip
    if summary.shed_rows:
        rows.append(("shed", f"{summary.shed_rows:,} rows"))
    return _table(rows) + _decisions(summary.decisions)


def course_html(name: str, steps: Sequence[Step], summary: RunSummary) -> str:
    """A run, or a controller beside a query: what it came to so far, and its newest periods."""
    seen = [step.observation for step in steps if step.observation is not None]
    name_of, latency = promised_quantile([one.latency for one in seen], summary.share)
    executors = [float(len(one.nodes)) for one in seen]
    charts = _chart(f"latency, {name_of}", latency, seconds_text, summary.max_latency_s)
    charts += _chart("executors", executors, lambda value: f"{value:.0f}")
    return f"<p><b>{escape(name)}</b></p>{charts}{summary_html(summary)}"


def _table(rows: Iterable[tuple[str, str]]) -> str:
    cells = (f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows)
    return f"<table>{''.join(cells)}</table>"


def _decisions(lines: Sequence[str]) -> str:
    if not lines:
        return ""
    newest = "".join(f"<li>{escape(line)}</li>" for line in lines[-MOST_LINES:])
    return f"<details><summary>the newest decisions</summary><ul>{newest}</ul></details>"


def _chart(
    name: str, values: Sequence[float], text: Callable[[float], str], bound: float | None = None
) -> str:
    """A line over the periods, with its bound; what was not measured is bridged."""
    known = [(place, value) for place, value in enumerate(values) if math.isfinite(value)]
    if not known:
        return ""
    top = max([value for _, value in known] + ([] if bound is None else [bound])) or 1.0
    step = (WIDTH - 2 * MARGIN) / max(1, len(values) - 1)

    def y(value: float) -> str:
        return f"{HEIGHT - MARGIN - value / top * (HEIGHT - 2 * MARGIN):.1f}"

    points = " ".join(f"{MARGIN + place * step:.1f},{y(value)}" for place, value in known)
    line = f'<polyline points="{points}" fill="none" stroke="#1f5fa8" stroke-width="1.6"/>'
    if bound is not None:
        line += (
            f'<line x1="0" x2="{WIDTH}" y1="{y(bound)}" y2="{y(bound)}" stroke="#b3261e" '
            'stroke-dasharray="4 3"/>'
        )
    now = f"{escape(name)}: {text(known[-1][1])}"
    limit = "" if bound is None else f" of {text(bound)}"
    return (
        f'<figure style="margin:0 0 .5em"><figcaption>{now}{limit}</figcaption>'
        f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{now}{limit}">{line}</svg>'
        "</figure>"
    )
