"""Why not more, why not fewer: a recorded decision seen again at other numbers of executors.

What the history keeps is enough to ask the policy again and to foretell the latency of each size
by the model of `promise`, whatever policy decided. Settings are not in the history, nor is what a
policy had learnt from other runs: where it would answer otherwise now, that is said.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from penstock.config import Settings
from penstock.control.act_costs import ActCosts
from penstock.control.actions import SetExecutors
from penstock.control.from_settings import policy_of, settings_of
from penstock.control.history.moment import Moment
from penstock.control.records import DecisionRecord, RunRecord
from penstock.forecast.calendar import RateCalendar
from penstock.model.decision import USUAL_SHARE, Decision, Limits, ScalingPlan
from penstock.model.observation import Observation
from penstock.scaling.foreseen import foreseen_window
from penstock.scaling.models.batch_course import steady_share_s
from penstock.scaling.policies.policy import ScalingContext, ScalingPolicy
from penstock.scaling.policies.promise_inputs import PromiseInputs, read_promise_inputs
from penstock.scaling.policies.registry import names

NEAR = 3  # executors more and fewer than what was decided that are looked at
_LOOK_AHEAD_S = 300.0
_LEAST_GAIN = 0.02  # of the latency, to be called faster


@dataclass(frozen=True)
class Alternative:
    """A number of executors that could have been chosen."""

    executors: int
    processors: int
    latency_s: float  # the share of results is within it, once they serve; infinite: rows pile up
    keeps_promise: bool | None  # None where latency is not foretold
    asks_for: int | None  # processors, by the policy if these were running; None: not known
    chosen: bool
    verdict: str


@dataclass(frozen=True)
class Why:
    """A decision, what it rested on, and what else could have been decided."""

    decision: DecisionRecord
    observation: Observation | None
    max_latency_s: float
    share: float
    planned_rate_per_s: float  # that sizes are judged by; NaN where nothing was measured
    alternatives: tuple[Alternative, ...]
    notes: tuple[str, ...] = ()


def why(moment: Moment, settings: Settings | None = None) -> Why:
    """The decision beside its alternatives, the fewest executors first.

    Of the settings, those count that the history may not hold: the share, and options of policies.
    """
    run, made = moment.run, moment.decision
    settings = settings or Settings()
    policy = _policy(moment, settings)
    kept = settings.share or made.numbers.get("share") or run.share or USUAL_SHARE
    context = _context(moment, kept)
    inputs = read_promise_inputs(context, run.batch_interval_s, _LOOK_AHEAD_S, RateCalendar())
    rate = _planned_rate(made, inputs, kept)
    sizes = _sizes(run, made)
    foretold = _foretold(context, inputs, rate, np.array(sizes) * run.slots_per_executor)
    chosen = _executors(made.guarded.processors, run)
    shown = _shown_to(policy, context, made)
    asked = [_asked(policy, shown, size * run.slots_per_executor) for size in sizes]
    found = tuple(
        Alternative(
            size,
            size * run.slots_per_executor,
            latency_s,
            None if math.isnan(latency_s) else latency_s <= run.max_latency_s,
            None if answer is None else answer.plan.processors,
            size == chosen,
            _verdict(_Size(size, latency_s, foretold[sizes.index(chosen)], answer), moment, kept),
        )
        for size, latency_s, answer in zip(sizes, foretold, asked, strict=True)
    )
    notes = _notes(moment, policy, shown)
    return Why(made, context.newest, run.max_latency_s, kept, rate, found, notes)


def _policy(moment: Moment, settings: Settings) -> ScalingPolicy | None:
    """The policy that decided; None where there is none of its name here."""
    run, name = moment.run, moment.decision.policy
    if name not in names():
        return None
    interval_s = run.batch_interval_s or None
    own = replace(settings_of(name, settings), batch_interval_s=interval_s)
    return policy_of(own, run.slots_per_executor)


def _executors(processors: int, run: RunRecord) -> int:
    return -(-processors // run.slots_per_executor)


def _sizes(run: RunRecord, made: DecisionRecord) -> list[int]:
    """What was there, wanted and decided; some more and fewer; and the limits."""
    plans = (made.current, made.decision.plan, made.guarded)
    known = {_executors(plan.processors, run) for plan in plans}
    chosen = _executors(made.guarded.processors, run)
    near = range(max(1, chosen - NEAR), chosen + NEAR + 1)
    allowed = {size for size in near if run.executors_min <= size <= run.executors_max}
    return sorted(known | allowed | {run.executors_min, run.executors_max})


def _context(moment: Moment, share: float) -> ScalingContext:
    run, made = moment.run, moment.decision
    slots = run.slots_per_executor
    costs, pending = ActCosts(slots, made.policy), list(moment.actions)
    changed_at_s, before = None, 0
    for seen in moment.window:
        while pending and pending[0].at_s < seen.at_s:
            act = pending.pop(0)
            if act.outcome.done and isinstance(act.outcome.action, SetExecutors):
                after = act.outcome.action.total * slots
                costs.asked(act.at_s, before or seen.processors, after)
                changed_at_s, before = act.at_s, after
        costs.saw(seen)
        before = before or seen.processors
    limits = Limits(run.executors_min * slots, run.executors_max * slots, run.max_latency_s, share)
    return ScalingContext(
        moment.window,
        made.current,
        limits,
        _component_edges(run, moment.window),
        _sharing(made),
        costs.expected,
        changed_at_s,
    )


def _shown_to(
    policy: ScalingPolicy | None, context: ScalingContext, made: DecisionRecord
) -> ScalingContext:
    """What the policy was shown: the rate that the loop foresaw, unless it looks ahead itself."""
    if policy is None or policy.looks_ahead or made.foreseen_rate_per_s is None:
        return context
    return replace(context, window=foreseen_window(context.window, made.foreseen_rate_per_s))


def _component_edges(
    run: RunRecord, window: Sequence[Observation]
) -> tuple[tuple[str, str], ...]:  # fmt: skip
    """Edges between components; the run has those between operators."""
    home = {o: c.name for c in (window[-1].components if window else ()) for o in c.operators}
    joined = [(home[a], home[b]) for a, b in run.edges if a in home and b in home]
    return tuple(dict.fromkeys((a, b) for a, b in joined if a != b))


def _sharing(made: DecisionRecord) -> Literal["time", "space"]:
    """Whether components have processors of their own, which together are all there are."""
    own = made.decision.plan.parallelism
    apart = len(own) > 1 and sum(own.values()) == made.decision.plan.processors
    return "space" if apart else "time"


def _planned_rate(made: DecisionRecord, inputs: PromiseInputs | None, share: float) -> float:
    """The rate that was planned for, as recorded; else what was measured and may come."""
    if "load_upper_per_s" in made.numbers:
        return made.numbers["load_upper_per_s"]
    if inputs is None:
        return math.nan
    known = made.foreseen_rate_per_s
    upper = float(inputs.ahead.upper_per_s(share)[: inputs.lead].max())
    return upper if known is None else max(known, inputs.rate_per_s)


def _foretold(
    context: ScalingContext, inputs: PromiseInputs | None, rate: float, processors: np.ndarray
) -> list[float]:
    if inputs is None or context.sharing == "space" or math.isnan(rate):
        return [math.nan] * len(processors)
    kept_s = steady_share_s(
        inputs.work, np.array([rate]), processors.astype(np.float64), context.limits.share
    )
    return [float(one) for one in kept_s]


def _asked(
    policy: ScalingPolicy | None, context: ScalingContext, processors: int
) -> Decision[ScalingPlan] | None:
    """What the policy would decide from the same observation, if so many were running.

    Shared in space, how so many would be divided is its own business: it may have no more.
    """
    if policy is None:
        return None
    if context.sharing == "space":
        limits = replace(context.limits, min_processors=1, max_processors=processors)
        return policy.decide(replace(context, limits=limits))
    own = dict.fromkeys(context.current.parallelism, processors)
    there = processors == context.current.processors
    current = context.current if there else ScalingPlan(own, processors)
    return policy.decide(replace(context, current=current))


@dataclass(frozen=True)
class _Size:
    executors: int
    latency_s: float
    chosen_latency_s: float
    answer: Decision[ScalingPlan] | None


def _verdict(size: _Size, moment: Moment, share: float) -> str:
    """Why it was, or was not, chosen."""
    run, made = moment.run, moment.decision
    chosen = _executors(made.guarded.processors, run)
    wanted = _executors(made.decision.plan.processors, run)
    more = size.executors - chosen
    if more == 0:
        if wanted != chosen:
            return f"chosen: {made.policy} wanted {wanted}"
        short = chosen == run.executors_max and size.latency_s > run.max_latency_s
        return f"chosen: executors-max allows no more than {chosen}" if short else "chosen"
    if size.executors == wanted:
        said = "; ".join(made.guard_reasons) or "no guard says why it was not done"
        return f"wanted by {made.policy}, held back: {said}"
    if size.executors > run.executors_max:
        return f"not allowed: executors-max is {run.executors_max}"
    if size.executors < run.executors_min:
        return f"not allowed: executors-min is {run.executors_min}"
    if math.isnan(size.latency_s):
        answer = size.answer
        allowed = size.executors * run.slots_per_executor
        if more < 0 and answer is not None and answer.plan.processors > allowed:
            said = answer.infeasible or "; ".join(answer.reasons)
            return f"too few: {made.policy} asks for {answer.plan.processors} processors: {said}"
        return "more to pay for" if more > 0 else "not known: its latency was not foretold"
    if math.isinf(size.latency_s):
        return "too few: rows come faster than they are served, and pile up"
    said = f"{share * 100:g}% of results within {size.latency_s:.3g} s"
    if size.latency_s > run.max_latency_s:
        return f"too slow: {said}, and {run.max_latency_s:g} s are promised"
    if more < 0:
        then = None if size.answer is None else _executors(size.answer.plan.processors, run)
        return f"would do for the load ahead ({said}); " + (
            "see the reasons"
            if then is None
            else f"{made.policy} would stay there, but a change has to pay"
            if then == size.executors
            else f"from there {made.policy} would go to {then}"
        )
    price = f"{more} executor-hour{'s' if more > 1 else ''} more for every hour"
    if size.latency_s > size.chosen_latency_s * (1 - _LEAST_GAIN):
        return f"no faster, and {price}"
    if size.chosen_latency_s <= run.max_latency_s:
        return f"faster than promised ({said}), and {price}"
    return f"would keep the promise ({said}): {price}"


def _notes(
    moment: Moment, policy: ScalingPolicy | None, context: ScalingContext
) -> tuple[str, ...]:  # fmt: skip
    made, notes = moment.decision, list[str]()
    again = made.decision if policy is None else policy.decide(context)
    if again.plan.processors != made.decision.plan.processors:
        notes.append(
            f"asked again now, {made.policy} suggests {again.plan.processors} processors where "
            f"{made.decision.plan.processors} are recorded: its options, or what it had learnt "
            "from other runs, are not in the history"
        )
    if context.sharing == "space":
        notes.append(
            "components have processors of their own, for which latency is not foretold by size"
        )
    return tuple(notes)
