"""Equivalent forms of operators over the periods of a run: what is tried, measured and used.

`scaling/forms.py` chooses; here is what it must remember. One operator is looked at at a time, so
that what changes in the cost of a row is its doing.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from penstock.control.actions import Outcome, UseForms
from penstock.control.history.store import HistoryStore
from penstock.control.last_resort import KEPT_SHARE, row_cost_s
from penstock.model.decision import RoomDecision
from penstock.model.observation import Observation
from penstock.model.topology import form_id
from penstock.scaling.forms import DRIFT, FIRST, FormCosts, Trial, called, choose_form

ROOM, POLICY = "forms", "custom"
SETTLES = 1  # periods after a change that still hold batches of the form before
MEASURED = 3  # periods that make up a trial
RATE, COST = "rate_per_s", "cost_s of "
MOST_RUNS = 20


@dataclass(frozen=True)
class FormStep:
    """What was measured and decided, and how it is carried out; None where nothing changes."""

    decision: RoomDecision
    action: UseForms | None


class Forms:
    """Tries equivalent forms and keeps to the one that costs least."""

    def __init__(
        self, forms: Mapping[str, tuple[str, ...]], max_latency_s: float,
        costs: FormCosts = FormCosts(),  # noqa: B008 - frozen
    ) -> None:  # fmt: skip
        self._forms = {operator: (FIRST, *names) for operator, names in forms.items()}
        self._max_latency_s, self.costs = max_latency_s, costs
        self.in_use = dict.fromkeys(self._forms, FIRST)
        self._seen: list[tuple[float, float]] = []  # rate and cost of a row, since the last change
        self._skip = SETTLES
        self._looking_at = next(iter(self._forms))

    def look(self, seen: Observation) -> FormStep | None:
        """What is to be used from now on, and what was measured; None while a trial goes on."""
        if self._skip > 0:
            self._skip -= 1
            return None
        cost_s, rate = row_cost_s(seen), seen.arrival_rate_per_s
        if cost_s > 0 and rate > 0:
            self._seen.append((rate, cost_s))
        if len(self._seen) < MEASURED:
            return None
        operator = self._looking_at
        rate, cost_s = (median(column) for column in zip(*self._seen, strict=True))
        self._seen.clear()
        trial = Trial(operator, self.in_use[operator], rate, cost_s)
        return self._next(seen, trial, self._learn(trial))

    def learn(self, outcome: Outcome) -> None:
        """An action came to this."""
        if outcome.done and isinstance(outcome.action, UseForms):
            self.in_use = dict.fromkeys(self._forms, FIRST) | dict(outcome.action.forms)
            self._seen.clear()
            self._skip = SETTLES

    def _learn(self, trial: Trial) -> bool:
        """Take a trial in; whether it told something new."""
        before = self.costs.at(trial.operator, trial.form, trial.rate_per_s)
        drifts = trial.cost_s > DRIFT * before or before > DRIFT * trial.cost_s
        if drifts:
            self.costs = self.costs.without(trial.operator, trial.rate_per_s)
        self.costs = self.costs.learnt([trial])
        return drifts or math.isnan(before)

    def _next(self, seen: Observation, trial: Trial, news: bool) -> FormStep | None:
        """The first operator that another form is wanted of; trials wait while results are late."""
        in_time = seen.latency is None or seen.latency.in_time_share >= KEPT_SHARE
        may_try = in_time and seen.backlog_rows <= trial.rate_per_s * self._max_latency_s
        for operator in sorted(self._forms, key=lambda name: name != trial.operator):
            forms, current = self._forms[operator], self.in_use[operator]
            choice = choose_form(operator, forms, current, trial.rate_per_s, self.costs, may_try)
            if choice.form != current:
                self._looking_at = operator
                what = f"{operator} -> {called(operator, choice.form)}"
                return self._step(seen.at_s, what, trial, (choice.why,), {operator: choice.form})
            if choice.tried:
                self._looking_at = operator
                break
        return self._step(seen.at_s, f"{trial.operator} stays", trial) if news else None

    def _step(
        self, at_s: float, what: str, trial: Trial, why: tuple[str, ...] = (),
        changed: Mapping[str, str] | None = None,
    ) -> FormStep:  # fmt: skip
        tried = f"{called(trial.operator, trial.form)} took {trial.cost_s:.3g} s for each row"
        numbers = {
            RATE: trial.rate_per_s, COST + form_id(trial.operator, trial.form): trial.cost_s
        }  # fmt: skip
        wanted = self.in_use | dict(changed or {})
        action = UseForms({name: form for name, form in wanted.items() if form != FIRST})
        decision = RoomDecision(at_s, ROOM, POLICY, f"form of {what}", numbers, (*why, tried))
        return FormStep(decision, action if changed else None)


def tried_before(
    store: HistoryStore, name: str, forms: Mapping[str, tuple[str, ...]]
) -> FormCosts:  # fmt: skip
    """What forms cost in the newest runs of that name, oldest first."""
    runs = [number for number, run in store.runs().items() if run.topology == name]
    trials = []
    for run in runs[-MOST_RUNS:]:
        for decision in store.read_room_decisions(run):
            if decision.room != ROOM:
                continue
            rate = decision.numbers.get(RATE, math.nan)
            trials += [
                Trial(operator, form, rate, cost)
                for operator, names in forms.items()
                for form in (FIRST, *names)
                if (cost := decision.numbers.get(COST + form_id(operator, form))) is not None
            ]
    return FormCosts().learnt(trials)
