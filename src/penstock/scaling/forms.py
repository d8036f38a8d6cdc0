"""Which of an operator's equivalent forms costs least at the present rate.

The algorithm selection of Kotto-Kombi 2018, ch. 3 s. 1.4.1 and ch. 4 s. 1.3.4: an index pays at
high rates and a plain scan at low ones, so what a form costs is known for a range of rates only.
Forms that were not tried at a rate are tried there, one after another; then the one of least
measured cost is used. Only operators before the first state or shuffle have forms, so a change
costs nothing but the time of a trial.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

FIRST = ""  # the name of the form that the operator was declared with
RATIO = 2.0  # between the rates of one range and the next
LEAST_GAIN = 0.05  # of the cost; less is noise
DRIFT = 1.5  # times what a form cost: it is tried again, and so are the others


@dataclass(frozen=True)
class Trial:
    """What a form cost, in processor-seconds for each row of the sources."""

    operator: str
    form: str
    rate_per_s: float
    cost_s: float


@dataclass(frozen=True)
class FormCosts:
    """By operator, form and range of rates."""

    known: Mapping[tuple[str, str, int], float] = field(default_factory=dict)

    def learnt(self, trials: Iterable[Trial]) -> "FormCosts":
        """With these trials; a later one counts for more than what was known.

        >>> FormCosts().learnt([Trial("look_up", "index", 90.0, 0.01)]).at("look_up", "index", 70.0)
        0.01
        """
        known = dict(self.known)
        for trial in trials:
            if trial.cost_s > 0 and trial.rate_per_s > 0:
                known[trial.operator, trial.form, range_of(trial.rate_per_s)] = trial.cost_s
        return FormCosts(known)

    def without(self, operator: str, rate_per_s: float) -> "FormCosts":
        """As if the operator had not been tried at such rates."""
        gone = (operator, range_of(rate_per_s))
        return FormCosts(
            {key: cost for key, cost in self.known.items() if (key[0], key[2]) != gone}
        )

    def at(self, operator: str, form: str, rate_per_s: float) -> float:
        """What it cost at such rates; NaN where it was not tried."""
        return self.known.get((operator, form, range_of(rate_per_s)), math.nan)


def range_of(rate_per_s: float) -> int:
    """The number of the range that a rate is in; rates below one share the lowest."""
    return math.ceil(math.log(max(rate_per_s, 1.0), RATIO) - 1e-9)


@dataclass(frozen=True)
class FormChoice:
    """The form to use next, whether it is only tried, and why; no reason where nothing changes."""

    form: str
    tried: bool = False
    why: str = ""


def choose_form(
    operator: str,
    forms: tuple[str, ...],
    in_use: str,
    rate_per_s: float,
    costs: FormCosts,
    may_try: bool,
) -> FormChoice:
    """Of all forms, the declared one among them, which is called FIRST."""
    cost = {form: costs.at(operator, form, rate_per_s) for form in forms}
    untried = [form for form in forms if math.isnan(cost[form])]
    if untried and may_try:
        form = in_use if in_use in untried else untried[0]
        said = f"{called(operator, form)} was not tried at about {rate_per_s:.3g} rows/s"
        return FormChoice(form, True, said)
    known = {form: value for form, value in cost.items() if not math.isnan(value)}
    if not known:
        return FormChoice(in_use)
    best = min(known, key=lambda form: known[form])
    present = cost[in_use]
    if not math.isnan(present) and known[best] > (1 - LEAST_GAIN) * present:
        return FormChoice(in_use)
    listed = ", ".join(f"{called(operator, form)} {known[form]:.3g} s" for form in known)
    return FormChoice(best, False, f"least work for each row at {rate_per_s:.3g} rows/s: {listed}")


def called(operator: str, form: str) -> str:
    """A form's name for a person."""
    return form or f"{operator} itself"
