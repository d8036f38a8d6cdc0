"""AUTOSCALE: parallelism from the trend of each operator's input (Kotto-Kombi 2018, ch. 5).

Variants of the consistency check (s.4 and 6):
  gal       every operator takes what its upstreams will emit into account (10)
  critical  only operators below a critical one do (Algorithm 1 as printed)
  local     each operator by its own history (LocalOnly)
  straight  only the kind of action upstream counts (Table 3)

(10) has no condition, and the growth by seven tasks instead of three in s. 6.1 comes from an
upstream that passes all it gets and is never critical: so `gal` has none either.

Differs from Kotto-Kombi 2018, ch. 5 (8): Capacity is already of one iteration, so not multiplied by
Delta.
Differs from Kotto-Kombi 2018, ch. 5 (8): a critical operator emits with its coming degree, as
s. 4.3.1 wants.
Differs from Kotto-Kombi 2018, ch. 5 s. 3.1: no memory between decisions, so sums are taken over the
window.
Differs from Kotto-Kombi 2018, ch. 5 Algorithm 1: `operators` is emptied at the start, not
`sources`.
Differs from Kotto-Kombi 2018, ch. 5 Algorithm 1: with `critical`, an operator is checked when a
parent of its own is critical.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from penstock.errors import InvalidInput
from penstock.forecast.trends import linear_trends
from penstock.model.decision import Decision, ScalingPlan
from penstock.scaling.activity import (
    COMBINE,
    NOTHING,
    SCALE_IN,
    SCALE_OUT,
    Thresholds,
    check_combine,
    combined,
    degree,
    expected_rows,
    task_capacities,
)
from penstock.scaling.exploration import upstream_first
from penstock.scaling.plans import change, hold
from penstock.scaling.policies.options import option
from penstock.scaling.policies.policy import ScalingContext
from penstock.scaling.suggestions import Suggestion, grown_plan, pooled_plan
from penstock.scaling.windows import OperatorWindows, operator_windows

VARIANTS = ("gal", "critical", "local", "straight")


@dataclass(frozen=True)
class Autoscale:
    """Preventive scaling by linear trends; the paper's parameters as defaults."""

    looks_ahead: ClassVar[bool] = True  # it fits a trend to the window by itself

    variant: str = option(
        "gal",
        "What counts besides an operator's own history: what its upstreams will emit (gal), that "
        "only below an upstream with too few tasks (critical), nothing (local), or whether "
        "upstreams scale out (straight).",
        choices=VARIANTS,
    )
    combine: str = option(
        "max", "Of an operator's own estimate and its upstreams', the higher or the lower.",
        choices=COMBINE,
    )  # fmt: skip
    window_s: float = option(
        60.0, "How far it looks back, and for how long it plans.", least=0.1, greatest=86_400
    )
    grace_s: float | None = option(
        None, "How long after a change it changes nothing.", least=0.001, greatest=86_400,
        off=0.0, shown="window_s",
    )  # fmt: skip
    theta_min: float = option(
        0.3, "Activity below which it scales in, unless the input rises.", least=0, greatest=1
    )
    theta_max: float = option(
        0.8, "Activity above which it scales out, if the input rises.", least=0, greatest=1
    )
    max_degree: int | None = option(
        None, "Most processors of one operator.", least=1, greatest=1_000_000, off=None
    )

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise InvalidInput(f"variant is {self.variant!r}; known: {', '.join(VARIANTS)}.")
        if not self.window_s > 0:
            raise InvalidInput(f"window_s is {self.window_s:g}; it must be above 0.")
        check_combine(self.combine)
        Thresholds(self.theta_min, self.theta_max)

    @property
    def name(self) -> str:
        return "autoscale"

    @property
    def monitored_s(self) -> float:
        """The monitoring window, which has to exceed those of operators."""
        return self.window_s

    @property
    def thresholds(self) -> Thresholds:
        """The bounds of low and high activity."""
        return Thresholds(self.theta_min, self.theta_max)

    def decide(self, context: ScalingContext) -> Decision[ScalingPlan]:
        """Degrees for the next iteration of the window."""
        grace_s = self.window_s if self.grace_s is None else self.grace_s
        if context.in_force_s < grace_s:
            return hold(context, f"no change yet: within {grace_s:g} s of the last one")
        windows = operator_windows(context, self.window_s, self.max_degree)
        if windows is None:
            return hold(context, "no measurement yet")
        if context.sharing == "time":
            return self._pooled(context, windows)
        return grown_plan(context, self.suggest(windows))

    def suggest(self, windows: OperatorWindows) -> list[Suggestion]:
        """What each operator should get, in the order of the windows."""
        local = self._local(windows)
        if self.variant == "local":
            return local
        if self.variant == "straight":
            return self._straight(windows, local)
        return self._global(windows, local)

    def _local(self, windows: OperatorWindows) -> list[Suggestion]:
        trends = linear_trends(windows.received_rows)
        rows = expected_rows(trends) + windows.pending_rows
        capacity = task_capacities(windows)
        return [
            self._suggestion(
                windows, i, float(rows[i]), float(capacity[i]), trends.rises[i], "own history"
            )
            for i in range(windows.size)
        ]

    def _suggestion(
        self, windows: OperatorWindows, i: int, rows: float, capacity: float, rises: bool, why: str
    ) -> Suggestion:
        current = int(windows.parallelism[i])
        level = rows / (capacity * current) if rows > 0 else 0.0
        action = self.thresholds.action(level, rises)
        if action == SCALE_IN and not windows.known[i]:
            action, why = NOTHING, "not measured"
        wanted = degree(current, level, action, max(current, int(windows.max_parallelism[i])))
        return Suggestion(windows.names[i], current, wanted, level, rows, capacity, rises, why)

    def _global(self, windows: OperatorWindows, local: list[Suggestion]) -> list[Suggestion]:
        """Replace LAL by GAL (10), or do so only below a critical parent (Algorithm 1)."""
        always = self.variant == "gal"
        found = list(local)
        for i in upstream_first(windows.upstreams):
            parents = [found[up] for up in windows.upstreams[i]]
            if not parents or not (always or any(parent.level >= 1 for parent in parents)):
                continue
            emitted = sum(
                parent.processed(parent.wanted) * sent
                for parent, sent in zip(parents, windows.selectivity[i], strict=True)
            )
            rows = combined(self.combine, local[i].rows, emitted)
            why = "own history" if rows == local[i].rows else "what its upstreams will emit"
            found[i] = self._suggestion(windows, i, rows, local[i].capacity, local[i].rises, why)
        return found

    def _straight(self, windows: OperatorWindows, local: list[Suggestion]) -> list[Suggestion]:
        """Table 3: a scale-out upstream turns nothing into scale-out and scale-in into nothing."""
        found = list(local)
        for i in upstream_first(windows.upstreams):
            grown = [found[up] for up in windows.upstreams[i] if found[up].action == SCALE_OUT]
            if not grown or local[i].action == SCALE_OUT:
                continue
            if local[i].action == SCALE_IN:
                found[i] = local[i].changed(local[i].current, "a scale-out upstream")
                continue
            factor = max(parent.wanted / parent.current for parent in grown)
            most = max(local[i].current, int(windows.max_parallelism[i]))
            wanted = min(most, int(np.ceil(local[i].current * factor - 1e-9)))
            found[i] = local[i].changed(wanted, "a scale-out upstream")
        return found

    def _pooled(self, context: ScalingContext, windows: OperatorWindows) -> Decision[ScalingPlan]:
        """Processors shared in time: one activity level of all operators together."""
        current = max(1, context.current.processors)
        found = self.suggest(windows)
        load = sum(suggestion.load for suggestion in found)
        level = load / current
        weights = np.array([suggestion.load for suggestion in found])
        trend = linear_trends((windows.received_rows.T @ windows.service_time_s.mean(axis=1))[None])
        rises = trend.rises[0] if weights.sum() > 0 else False
        action = self.thresholds.action(level, rises)
        if action == SCALE_IN and not all(windows.known):
            line = change("processors", current, current, "no scale-in: not all was measured")
            return hold(context, line)
        wanted = degree(current, level, action, max(current, int(windows.max_parallelism.min())))
        because = f"activity level {level:.3g}, {'rising' if rises else 'not rising'}"
        return pooled_plan(context, wanted, load, because)
