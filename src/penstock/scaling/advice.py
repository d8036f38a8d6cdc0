"""One scaling decision for a JSON document: `penstock advise scaling`."""

import math
from collections import Counter
from dataclasses import replace
from typing import Any

from penstock.documents import Document, Schema
from penstock.errors import InvalidInput
from penstock.model.decision import Decision, Limits, ScalingPlan
from penstock.model.observation import ComponentObservation, Observation
from penstock.scaling.documents.drs import advise_drs
from penstock.scaling.documents.forms import FORMS, MOST_PROCESSORS
from penstock.scaling.documents.periods import context_of
from penstock.scaling.documents.windows import windows_of
from penstock.scaling.policies.autoscale import Autoscale
from penstock.scaling.policies.autoscale_plus import AutoscalePlus
from penstock.scaling.policies.incremental import Incremental
from penstock.scaling.policies.policy import ScalingContext
from penstock.scaling.policies.promise import Promise
from penstock.scaling.policies.registry import has_option, policy
from penstock.scaling.suggestions import grown_plan

SCHEMA: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "penstock advise scaling",
    "description": "Operators with their load; the answer gives processors for each.",
    "type": "object",
    "properties": {"policy": {"enum": list(FORMS)}},
    "required": ["policy"],
    "allOf": [
        {
            "if": {"properties": {"policy": {"const": name}}, "required": ["policy"]},
            "then": form,
        }
        for name, form in FORMS.items()
    ],
}


_OPTIONS = ("combine", "variant", "theta_min", "theta_max", "alpha", "beta", "cpu_reservation")


def advise(document: Document) -> dict[str, Any]:
    """The answer to a document that obeys SCHEMA."""
    counts = Counter(operator["name"] for operator in document["operators"])
    name, times = counts.most_common(1)[0]
    if times > 1:
        raise InvalidInput(f"operators name {name!r} {times} times; names must be unique.")
    if document["policy"] == "drs":
        return advise_drs(document)
    if document["policy"] == "incremental":
        return _incremental(document)
    if document["policy"] in ("promise", "ds2"):
        return _observed(document)
    return _windowed(document)


def _observed(document: Document) -> dict[str, Any]:
    """What a policy would decide at the end of the newest period."""
    name = document["policy"]
    run = {
        "step": int(document.get("slots", 1)),
        "trigger_interval_s": document.get("batch_interval_s", 0.0),
    }
    known = {option: value for option, value in run.items() if has_option(name, option)}
    decide = policy(name, **{**known, **document.get("options", {})}).decide
    decision = decide(context_of(document, Promise.window_periods))
    slots = int(document.get("slots", 1))
    whole = -(-decision.plan.processors // slots) * slots  # executors
    together = dict.fromkeys(decision.plan.parallelism, whole)
    answer = _answer(document, replace(decision, plan=ScalingPlan(together, whole)))
    expected_s = decision.numbers.get("latency_expected_s", math.inf)
    return {**answer, "expected_latency_s": expected_s} if math.isfinite(expected_s) else answer


def _incremental(document: Document) -> dict[str, Any]:
    thresholds = document["thresholds"]
    policy = Incremental(float(thresholds["min"]), float(thresholds["max"]))
    components = tuple(
        ComponentObservation(
            name=operator["name"],
            operators=(operator["name"],),
            arrival_rate_per_s=float(operator["arrival_rate"]),
            service_time_s=1.0 / operator["service_rate"],
            parallelism=int(operator["parallelism"]),
            busy_s=0.0,
        )
        for operator in document["operators"]
    )
    observation = Observation(
        at_s=1.0, period_s=1.0, arrival_rate_per_s=0.0, backlog_rows=0.0, components=components
    )
    answer = _answer(document, policy.decide(_context(document, (observation,))))
    del answer["processors"]  # nobody counts them: each operator is stepped by itself
    return answer


def _windowed(document: Document) -> dict[str, Any]:
    given = {option: document[option] for option in _OPTIONS if option in document}
    windows = windows_of(document)
    if document["policy"] == "autoscale":
        suggestions = Autoscale(**given, window_s=windows.duration_s).suggest(windows)
    else:
        suggestions = AutoscalePlus(**given, window_s=windows.duration_s).suggest(windows)
    decision = grown_plan(_context(document, ()), suggestions)
    return _answer(document, decision)


def _context(document: Document, window: tuple[Observation, ...]) -> ScalingContext:
    running = {o["name"]: int(o["parallelism"]) for o in document["operators"]}
    most = document.get("max_processors", 2 * MOST_PROCESSORS * len(running))
    return ScalingContext(
        window=window,
        current=ScalingPlan(running, sum(running.values())),
        limits=Limits(1, int(most), 1.0),
        sharing="space",
    )


def _answer(document: Document, decision: Decision[ScalingPlan]) -> dict[str, Any]:
    plan = decision.plan
    answer: dict[str, Any] = {
        "parallelism": {o["name"]: plan.parallelism[o["name"]] for o in document["operators"]},
        "processors": plan.processors,
        "reasons": list(decision.reasons),
    }
    if decision.infeasible:
        answer["infeasible"] = decision.infeasible
    return answer
