"""What a person sees while a topology runs: a live table, or plain lines when not a terminal."""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from penstock.cli.output import is_quiet, one_line
from penstock.control.step import clock_time
from penstock.model.promised_quantile import is_late, promised_quantile
from penstock.model.start_up import StartUp

if TYPE_CHECKING:
    from penstock.control.step import Step
    from penstock.model.observation import ComponentObservation

KEPT_DECISIONS = 6


class LiveView:
    """Takes the loop's steps; the run may be without end, so `total_rows` may be None."""

    def __init__(
        self, title: str, max_latency_s: float, total_rows: int | None, out: TextIO | None = None,
        joined: bool = False, share: float | None = None,
    ) -> None:  # fmt: skip
        """`share` of the results must be within `max_latency_s`; None where it is not known."""
        self._out = out  # None: standard error, as the run's own answer is on standard output
        self._title = title
        self._max_latency_s, self._share = max_latency_s, share
        self._total_rows = total_rows
        self._done_rows = 0
        self._decisions: deque[str] = deque(maxlen=KEPT_DECISIONS)
        self._last: Step | None = None
        self._live: Any = None
        self.notes: Callable[[], Sequence[str]] = tuple  # what sources say, once they run
        self._noted: tuple[str, ...] = ()
        self._start_up = None if joined else StartUp()  # None: it began before we looked
        self._counts = False  # whether start-up was over in the last period

    def step(self, step: Step) -> None:
        """One period has passed."""
        self._last = step
        if step.observation is not None:
            started = self._start_up is None or self._start_up.counts(step.observation)
            self._counts = started
        if step.observation is not None and step.observation.latency is not None:
            self._done_rows += step.observation.latency.count
        if step.changes:
            self._decisions.append(one_line(step.line()))
        if self._live is None:
            self._print(self._line(step))
        self.look()

    def look(self) -> None:
        """Show what there is to note, whether or not a period has passed."""
        before, self._noted = self._noted, tuple(one_line(note) for note in self.notes())
        if self._live is not None:
            self._live.update(self._table())
            return
        for note in self._noted:
            if note not in before:
                self._print(f"  {note}")

    def _print(self, line: str) -> None:
        if self._out is not None or not is_quiet():
            print(line, file=self._out or sys.stderr, flush=True)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Draw on the terminal for the time of a `with` block."""
        out = self._out or sys.stderr
        if not out.isatty() or (self._out is None and is_quiet()):
            yield
            return
        from rich.console import Console
        from rich.live import Live

        with Live(self._table(), console=Console(file=out), refresh_per_second=4) as live:
            self._live = live
            yield
            self._live = None

    def _line(self, step: Step) -> str:
        """A period in one line."""
        seen = step.observation
        if seen is None:
            return f"{clock_time(step.at_s)} nothing observed yet"
        text = f"{clock_time(step.at_s)} {self._rates(step)}, {self._latency(step)}"
        text += f", executors {len(seen.nodes)}"
        if step.changes:
            text += f"\n{one_line(step.line())}"
        return text

    def _rates(self, step: Step) -> str:
        seen = step.observation
        assert seen is not None
        rate = seen.arrival_rate_per_s
        known = f"{rate:,.0f}/s" if math.isfinite(rate) else "not known yet"
        return f"rate {known}, backlog {seen.backlog_rows:,.0f}"

    def _latency(self, step: Step) -> str:
        seen = step.observation
        if seen is None or seen.latency is None:
            return f"latency - of {self._max_latency_s:g} s"
        latency = seen.latency
        name, (kept_s,) = promised_quantile([latency], self._share)
        return (
            f"latency {latency.mean_s:.1f} s ({name}: {kept_s:.1f} s) "
            f"of {self._max_latency_s:g} s, "
            + (f"in time {latency.in_time_share:.0%}" if self._counts else "still starting up")
        )

    def _table(self) -> Any:
        from rich.console import Group
        from rich.panel import Panel
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 2))
        if self._last is None or self._last.observation is None:
            grid.add_row("waiting for the first batch")
        else:
            step, seen = self._last, self._last.observation
            grid.add_row("time", clock_time(step.at_s))
            grid.add_row("load", self._rates(step))
            latency = seen.latency
            late = latency is not None and is_late(latency, self._share, self._max_latency_s)
            grid.add_row("latency", Text(self._latency(step), style="red" if late else "green"))
            nodes = "■" * len(seen.nodes)
            grid.add_row("executors", f"{len(seen.nodes)} {nodes} ({seen.processors} slots)")
            for component in seen.components:
                grid.add_row(component.name, _work(component))
        parts: list[Any] = [grid]
        if self._noted:
            parts.append(Text("\n".join(self._noted), style="yellow"))
        if self._total_rows:
            parts.append(ProgressBar(total=self._total_rows, completed=self._done_rows))
        if self._decisions:
            parts.append(Text("\n".join(self._decisions)))
        return Panel(Group(*parts), title=self._title)


def _work(component: ComponentObservation) -> str:
    """What a component does, as far as it was measured."""
    rate, cost_s = component.arrival_rate_per_s, component.service_time_s
    known = [
        *([f"{rate:,.0f}/s"] if math.isfinite(rate) else []),
        *([f"{cost_s * 1e3:.2f} ms a row"] if math.isfinite(cost_s) else []),
    ]
    return ", ".join(known) or "not measured yet"
