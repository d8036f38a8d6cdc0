"""The last resort over the periods of a run: since when the bound is missed, and what was reported.

`last_resort.py` decides; here is what it must remember.
"""

import math
from dataclasses import dataclass

from penstock.control.actions import Action, Outcome, ShedLoad, UseVariants
from penstock.model.decision import Decision, RoomDecision
from penstock.model.observation import Observation
from penstock.scaling.last_resort import (
    LastResortPlan,
    LastResortRules,
    Situation,
    decide_last_resort,
    relative_error,
)

ROOM = "last resort"
KEPT_SHARE = 0.95  # of results within the bound: the promise is kept


@dataclass(frozen=True)
class LastResortStep:
    """A plan that is not the present one, or cannot be enough; and its record."""

    plan: LastResortPlan
    decision: RoomDecision


class LastResort:
    """Takes steps of the last resort and undoes them."""

    def __init__(self, rules: LastResortRules, max_latency_s: float) -> None:
        self._rules, self._max_latency_s = rules, max_latency_s
        self.plan = LastResortPlan()
        self._late_since_s = self._in_time_since_s = math.nan
        self._cost_s: dict[str, float] = {}  # of a row, before an operator's form was changed
        self._last_cost_s = math.nan
        self._reported_infeasible: str | None = None

    def look(self, seen: Observation, processors: int, at_limit: bool) -> LastResortStep | None:
        """What is to change after a period, with its numbers and reasons; None: nothing."""
        late = self._lateness(seen)
        at_s, cost_s = seen.at_s, row_cost_s(seen)
        if not math.isnan(cost_s):
            self._last_cost_s = cost_s
        if math.isnan(self._last_cost_s):
            late = None  # no batch was measured yet: a start is slow, and no reason for less
        if late is not None or not at_limit:
            missed = bool(late) and at_limit
            self._late_since_s = _since(missed, self._late_since_s, at_s)
            self._in_time_since_s = _since(late == "", self._in_time_since_s, at_s)
        situation = self._situation(seen, processors, late or "")
        decision = decide_last_resort(self.plan, situation, self._rules)
        if decision.plan == self.plan:
            return self._stays(decision, situation, seen)
        self._reported_infeasible = None
        return self._recorded(decision, situation, seen)

    def actions(self, wanted: LastResortPlan) -> tuple[Action, ...]:
        """Only differences."""
        found: list[Action] = []
        if wanted.cheaper != self.plan.cheaper:
            found.append(UseVariants(wanted.cheaper))
        if wanted.shed != self.plan.shed:
            found.append(ShedLoad(wanted.shed))
        return tuple(found)

    def wait(self) -> None:
        """A step was taken or advised: the time until the next one begins anew."""
        self._late_since_s = self._in_time_since_s = math.nan

    def learn(self, outcome: Outcome, seen: Observation) -> None:
        """An action came to this."""
        if not outcome.done:
            return
        action = outcome.action
        if isinstance(action, UseVariants):
            for name in set(action.operators) - set(self.plan.cheaper):
                self._cost_s[name] = row_cost_s(seen)
            self.plan = LastResortPlan(action.operators, self.plan.shed)
        elif isinstance(action, ShedLoad):
            self.plan = LastResortPlan(self.plan.cheaper, action.share)

    def _lateness(self, seen: Observation) -> str | None:
        """By what the bound is missed; empty when it is kept, None when that is not known."""
        bound_s = self._max_latency_s
        allowed = seen.arrival_rate_per_s * bound_s
        if seen.backlog_rows > allowed:
            numbers = f"backlog {seen.backlog_rows:.0f}, {bound_s:g} s allow {allowed:.0f}"
            return f"too many rows wait ({numbers})"
        if seen.latency is None:
            return "" if seen.arrival_rate_per_s == seen.backlog_rows == 0 else None
        share = seen.latency.in_time_share
        if share < KEPT_SHARE:
            numbers = f"{share:.0%} within {bound_s:g} s, p95 {seen.latency.p95_s:.3g} s"
            return f"results are late ({numbers})"
        return ""

    def _situation(self, seen: Observation, processors: int, late: str) -> Situation:
        rate, cost_s = seen.arrival_rate_per_s, self._last_cost_s
        behind = max(0.0, seen.backlog_rows - rate * self._max_latency_s)
        behind_load = behind * cost_s / max(self._rules.after_s, self._max_latency_s)
        return Situation(
            processors=processors,
            load=rate * cost_s if rate else 0.0,
            late_for_s=_age(self._late_since_s, seen.at_s),
            in_time_for_s=_age(self._in_time_since_s, seen.at_s),
            late=late,
            behind_load=behind_load if behind_load > 0 else 0.0,
            full_load={name: rate * cost for name, cost in self._cost_s.items()},
            loads={
                operator: component.arrival_rate_per_s * component.service_time_s
                for component in seen.components
                for operator in (component.name, *component.operators)
            },
        )

    def _stays(
        self, decision: Decision[LastResortPlan], situation: Situation, seen: Observation
    ) -> LastResortStep | None:
        """That nothing more can be done is reported once, not in every period."""
        if decision.infeasible is None:
            if situation.late == "":
                self._reported_infeasible = None
            return None
        if self._reported_infeasible is not None:
            return None
        self._reported_infeasible = decision.infeasible
        return self._recorded(decision, situation, seen)

    def _recorded(
        self, decision: Decision[LastResortPlan], situation: Situation, seen: Observation
    ) -> LastResortStep:
        plan = decision.plan
        numbers = {
            "shed_at_most": self._rules.shed_at_most,
            "shed": plan.shed,
            "operators_cheaper": float(len(plan.cheaper)),
            "load": situation.load,
            "processors": float(situation.processors),
        }
        reasons = decision.reasons
        if plan.shed > 0:
            rows = _batch_rows(seen)
            error = relative_error(plan.shed, rows)
            numbers["error_of_count"] = error
            reasons = (
                *reasons,
                f"a count over the {rows:.0f} rows of a batch, divided by {1 - plan.shed:.2f}, is "
                f"within {error:.2%} of the truth 19 times in 20; over r rows within "
                f"{relative_error(plan.shed, 1) * 100:.3g}%/sqrt(r)",
            )
        what = "nothing more can be done"
        if plan != self.plan:
            what = "; ".join(str(action) for action in self.actions(plan))
        known = {name: value for name, value in numbers.items() if math.isfinite(value)}
        record = RoomDecision(seen.at_s, ROOM, "custom", what, known, reasons, decision.infeasible)
        return LastResortStep(plan, record)


def row_cost_s(seen: Observation) -> float:
    """Processor-seconds of a row of the sources, over all components."""
    rate, batches = seen.arrival_rate_per_s, seen.batches
    if rate > 0:
        return seen.offered_load / rate
    if batches is None or not batches.mean_rows > 0:
        return math.nan
    # Nothing arrives any more, and what waits is still worked off.
    return (batches.mean_duration_s - batches.mean_overhead_s) * seen.processors / batches.mean_rows


def _batch_rows(seen: Observation) -> float:
    """Rows of a batch in this period; of the whole period where no batch ended in it."""
    if seen.batches is not None and seen.batches.mean_rows > 0:
        return seen.batches.mean_rows
    return max(1.0, seen.arrival_rate_per_s * seen.period_s)


def _since(holds: bool, since_s: float, at_s: float) -> float:
    if not holds:
        return math.nan
    return at_s if math.isnan(since_s) else since_s


def _age(since_s: float, at_s: float) -> float:
    return 0.0 if math.isnan(since_s) else at_s - since_s
