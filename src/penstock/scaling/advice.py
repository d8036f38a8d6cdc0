"""One scaling decision for a JSON document: `penstock advise scaling`."""

from typing import Any

from penstock.documents import Document, Schema
from penstock.errors import InvalidInput
from penstock.model.decision import Limits, ScalingPlan
from penstock.model.observation import ComponentObservation, Observation
from penstock.scaling.incremental import Incremental
from penstock.scaling.policy import ScalingContext

_MOST = 1_000_000  # processors; only keeps numbers finite
_RATE = {"type": "number", "minimum": 0, "maximum": 1e12}
_INCREMENTAL: Schema = {
    "description": "One processor more or less by thresholds on arrival rate over capacity.",
    "properties": {
        "policy": {"const": "incremental"},
        "operators": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "minLength": 1},
                    "arrival_rate": {**_RATE, "description": "rows a second that arrive"},
                    "service_rate": {
                        "type": "number",
                        "exclusiveMinimum": 0,
                        "maximum": 1e12,
                        "description": "rows a second one processor can serve",
                    },
                    "parallelism": {"type": "integer", "minimum": 1, "maximum": _MOST},
                },
                "required": ["name", "arrival_rate", "service_rate", "parallelism"],
                "additionalProperties": False,
            },
        },
        "thresholds": {
            "type": "object",
            "description": "scale in below min, out above max; min must be below max",
            "properties": {
                "min": {"type": "number", "minimum": 0},
                "max": {"type": "number", "exclusiveMinimum": 0},
            },
            "required": ["min", "max"],
            "additionalProperties": False,
        },
    },
    "required": ["policy", "operators", "thresholds"],
    "additionalProperties": False,
}
_FORMS = {"incremental": _INCREMENTAL}

SCHEMA: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "penstock advise scaling",
    "description": "Operators with their load; the answer gives processors for each.",
    "type": "object",
    "properties": {"policy": {"enum": sorted(_FORMS)}},
    "required": ["policy"],
    "allOf": [
        {
            "if": {"properties": {"policy": {"const": name}}, "required": ["policy"]},
            "then": form,
        }
        for name, form in _FORMS.items()
    ],
}


def advise(document: Document) -> dict[str, Any]:
    """The answer to a document that obeys SCHEMA."""
    names = [operator["name"] for operator in document["operators"]]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(f"operators name {name!r} twice; names must be unique.")
    return _incremental(document)


def _incremental(document: Document) -> dict[str, Any]:
    operators = document["operators"]
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
        for operator in operators
    )
    running = {component.name: component.parallelism for component in components}
    observation = Observation(
        at_s=1.0, period_s=1.0, arrival_rate_per_s=0.0, backlog_rows=0.0, components=components
    )
    context = ScalingContext(
        window=(observation,),
        current=ScalingPlan(running, sum(running.values())),
        limits=Limits(1, 2 * _MOST * len(operators), 1.0),
        sharing="space",
    )
    decision = policy.decide(context)
    return {
        "parallelism": {name: decision.plan.parallelism[name] for name in running},
        "reasons": list(decision.reasons),
    }
