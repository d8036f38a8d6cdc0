"""What a run came to: the promise kept or not, its cost, and what fixed sizes would have cost."""

import math
from collections import deque
from dataclasses import dataclass

from penstock.control.step import Step
from penstock.model.observation import Observation

MOST_DECISIONS = 100  # lines of decisions in a summary, the newest; the history holds all of them


@dataclass(frozen=True)
class RunSummary:
    """The figures a person asks for at the end of a run."""

    duration_s: float
    results: int
    in_time_share: float  # NaN when there were no results
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


class RunTally:
    """Sums over the steps of a run, each taken once: they need no more room after a month."""

    def __init__(self) -> None:
        self._duration_s = self._executor_seconds = 0.0
        self._results, self._reconfigurations, self._changes = 0, 0, 0
        self._in_time = self._latency_s = 0.0  # each result counted
        self._latency_max_s, self._shed_rows = -math.inf, 0.0
        self._decisions: deque[str] = deque(maxlen=MOST_DECISIONS)

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
        latency = seen.latency
        if latency is None:
            return
        self._results += latency.count
        self._in_time += latency.count * latency.in_time_share
        self._latency_s += latency.count * latency.mean_s
        self._latency_max_s = max(self._latency_max_s, latency.max_s)

    def summary(self, max_latency_s: float, executors_min: int, executors_max: int) -> RunSummary:
        """What the steps so far come to."""
        results, lines = self._results, tuple(self._decisions)
        return RunSummary(
            duration_s=self._duration_s,
            results=results,
            in_time_share=self._in_time / results if results else math.nan,
            latency_mean_s=self._latency_s / results if results else math.nan,
            latency_max_s=self._latency_max_s if results else math.nan,
            max_latency_s=max_latency_s,
            executor_seconds=self._executor_seconds,
            static_min_executor_seconds=executors_min * self._duration_s,
            static_max_executor_seconds=executors_max * self._duration_s,
            reconfigurations=self._reconfigurations,
            decisions=lines,
            shed_rows=int(self._shed_rows),
            earlier_decisions=self._changes - len(lines),
        )
