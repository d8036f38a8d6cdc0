"""What a run came to: the promise kept or not, its cost, and what fixed sizes would have cost."""

import math
from collections import defaultdict, deque
from dataclasses import dataclass

from penstock.control.step import Step
from penstock.model.decision import USUAL_SHARE
from penstock.model.number_text import share_text
from penstock.model.observation import Observation, SinkObservation
from penstock.model.start_up import StartUp

MOST_DECISIONS = 100  # lines of decisions in a summary, the newest; the history holds all of them


@dataclass(frozen=True)
class SinkSummary:
    """The promise at one of several sinks, over the results after start-up."""

    name: str
    max_latency_s: float
    in_time_share: float
    latency_mean_s: float
    latency_max_s: float

    def line(self) -> str:
        """As it is told beside the whole."""
        return (
            f"  {self.name}: {share_text(self.in_time_share)} within {self.max_latency_s:g} s "
            f"(mean {self.latency_mean_s:.2f} s, worst {self.latency_max_s:.2f} s)"
        )


@dataclass(frozen=True)
class RunSummary:
    """The figures a person asks for at the end of a run.

    The share in time and the latencies are of the results after start-up (see start_up.py); of a
    run that ended before that, they are NaN.
    """

    duration_s: float
    results: int  # all of them
    in_time_share: float
    latency_mean_s: float
    latency_max_s: float
    max_latency_s: float
    executor_seconds: float
    static_min_executor_seconds: float
    static_max_executor_seconds: float
    reconfigurations: int
    decisions: tuple[str, ...]  # one line for each of the newest that changed something
    shed_rows: int = 0  # as sources counted them; no results
    earlier_decisions: int = 0  # that changed something and have no line here
    startup_s: float = 0.0  # until results began to count
    startup_results: int = 0
    startup_latency_max_s: float = math.nan
    sinks: tuple[SinkSummary, ...] = ()  # where there are several
    share: float = USUAL_SHARE  # of the results that must be within `max_latency_s`

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        """As a notebook shows it."""
        from penstock.control.notebook import summary_html

        return summary_html(self)

    def _bounds_differ(self) -> bool:
        """Whether sinks have bounds of their own: otherwise one line says it for all."""
        return len({sink.max_latency_s for sink in self.sinks}) > 1

    def lines(self) -> list[str]:
        """The end of a run for a person."""
        used = self.executor_seconds
        lines = [
            f"{self.duration_s:.0f} s, {self.results:,} rows",
            f"in time: {self._in_time()}",
            *(sink.line() for sink in self.sinks if self._bounds_differ()),
            *self._start_up(),
            f"executor-seconds: {used:.0f} (static minimum {self.static_min_executor_seconds:.0f}, "
            f"static maximum {self.static_max_executor_seconds:.0f})",
            *([f"shed: {self.shed_rows:,} rows more"] if self.shed_rows else []),
            f"reconfigurations: {self.reconfigurations}",
        ]
        if self.earlier_decisions:
            lines.append(f"  {self.earlier_decisions} earlier ones: penstock history --changes")
        return lines + [f"  {line}" for line in self.decisions]

    def _in_time(self) -> str:
        if self.results == 0:
            return "no results"
        if self.results == self.startup_results:
            return "nothing to count, all rows came before the first batch was through"
        return (
            f"{share_text(self.in_time_share)} within {self.max_latency_s:g} s "
            f"(mean {self.latency_mean_s:.2f} s, worst {self.latency_max_s:.2f} s)"
        )

    def _start_up(self) -> list[str]:
        if self.startup_results == 0:
            return []
        return [
            f"start-up: {self.startup_s:.0f} s, {self.startup_results:,} rows that came meanwhile "
            f"are not in that share (worst {self.startup_latency_max_s:.2f} s)"
        ]


class _SinkTally:
    """Sums over the results at one sink."""

    def __init__(self) -> None:
        self.bound_s, self.rows, self.in_time, self.latency_s = math.nan, 0.0, 0.0, 0.0
        self.latency_max_s = -math.inf

    def take(self, seen: SinkObservation) -> None:
        latency = seen.latency
        self.bound_s = seen.max_latency_s
        self.rows += latency.count
        self.in_time += latency.count * latency.in_time_share
        self.latency_s += latency.count * latency.mean_s
        self.latency_max_s = max(self.latency_max_s, latency.max_s)

    def summary(self, name: str) -> SinkSummary:
        return SinkSummary(
            name, self.bound_s, self.in_time / self.rows, self.latency_s / self.rows,
            self.latency_max_s,
        )  # fmt: skip


class RunTally:
    """Sums over the steps of a run, each taken once: they need no more room after a month."""

    def __init__(self) -> None:
        self._duration_s = self._executor_seconds = 0.0
        self._results, self._reconfigurations, self._changes = 0, 0, 0
        self._start_up = StartUp()
        self._startup_s, self._startup_results, self._startup_latency_max_s = 0.0, 0, -math.inf
        self._in_time = self._latency_s = 0.0  # each result counted
        self._latency_max_s, self._shed_rows = -math.inf, 0.0
        self._decisions: deque[str] = deque(maxlen=MOST_DECISIONS)
        self._sinks: defaultdict[str, _SinkTally] = defaultdict(_SinkTally)

    def take(self, step: Step) -> None:
        """Add a period; executors being drained still cost."""
        if step.carried_out:
            self._reconfigurations += 1
        if step.changes:
            self._changes += 1
            self._decisions.append(step.line())
        if step.observation is not None:
            self._observed(step.observation)

    def _observed(self, seen: Observation) -> None:
        self._duration_s += seen.period_s
        self._executor_seconds += len(seen.nodes) * seen.period_s
        self._shed_rows += sum(d.numbers.get("shed_rows", 0.0) for d in seen.decided)
        latency, counts = seen.latency, self._start_up.counts(seen)
        if not counts:
            self._startup_s += seen.period_s
        if latency is None:
            return
        self._results += latency.count
        if not counts:
            self._startup_results += latency.count
            self._startup_latency_max_s = max(self._startup_latency_max_s, latency.max_s)
            return
        self._in_time += latency.count * latency.in_time_share
        self._latency_s += latency.count * latency.mean_s
        self._latency_max_s = max(self._latency_max_s, latency.max_s)
        for sink in seen.sinks:
            self._sinks[sink.name].take(sink)

    def summary(
        self, max_latency_s: float, executors_min: int, executors_max: int,
        share: float = USUAL_SHARE,
    ) -> RunSummary:  # fmt: skip
        """What the steps so far come to."""
        counted, lines = self._results - self._startup_results, tuple(self._decisions)
        return RunSummary(
            duration_s=self._duration_s,
            results=self._results,
            in_time_share=self._in_time / counted if counted else math.nan,
            latency_mean_s=self._latency_s / counted if counted else math.nan,
            latency_max_s=self._latency_max_s if counted else math.nan,
            max_latency_s=max_latency_s,
            executor_seconds=self._executor_seconds,
            static_min_executor_seconds=executors_min * self._duration_s,
            static_max_executor_seconds=executors_max * self._duration_s,
            reconfigurations=self._reconfigurations,
            decisions=lines,
            shed_rows=int(self._shed_rows),
            earlier_decisions=self._changes - len(lines),
            startup_s=self._startup_s,
            startup_results=self._startup_results,
            startup_latency_max_s=(
                self._startup_latency_max_s if self._startup_results else math.nan
            ),
            sinks=tuple(tally.summary(name) for name, tally in self._sinks.items()),
            share=share,
        )
