"""`penstock advise fusion`: components for an operator graph given as a JSON document."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from penstock.documents import Document, Schema
from penstock.errors import InvalidInput
from penstock.fusion.costs import Costs, FusionLimits, rule_for
from penstock.fusion.graph import OperatorStatistics, StreamStatistics, operator_graph
from penstock.fusion.planner import ALGORITHMS, decide_fusion
from penstock.fusion.rebalancing import TOLERANCE
from penstock.model.observation import Floats

_NAME: Schema = {"type": "string", "pattern": r"\S"}
_NAMES: Schema = {"type": "array", "items": _NAME, "minItems": 1, "uniqueItems": True}
_ROWS: Schema = {"type": "number", "minimum": 0, "maximum": 1e15}
_HISTOGRAM: Schema = {
    "type": "array",
    "minItems": 1,
    "items": {"type": "array", "minItems": 1, "items": _ROWS},
}
_OPERATOR: Schema = {
    "type": "object",
    "required": ["name", "key"],
    "additionalProperties": False,
    "properties": {
        "name": {**_NAME, "description": "unique name of the operator"},
        "key": {
            "description": "columns it is partitioned by; null if any partitioning will do",
            "anyOf": [_NAMES, {"type": "null"}],
        },
        "exact": {
            "type": "boolean",
            "default": False,
            "description": "divided by all columns of its key only, as joins of streams on Spark",
        },
        "state": {
            **_HISTOGRAM,
            "description": "rows of state: one list per window, one number per key group",
        },
    },
}
_STREAM: Schema = {
    "type": "object",
    "required": ["from", "to", "load"],
    "additionalProperties": False,
    "properties": {
        "from": {
            "type": ["string", "null"],
            "description": "operator that sends, or null for a source",
        },
        "to": {"type": "string", "description": "operator that receives"},
        "load": {
            "description": "rows sent: in all, or one list per window with one per key group",
            "anyOf": [_ROWS, _HISTOGRAM],
        },
        "columns": {
            **_NAMES,
            "description": "columns of the stream; if given, the receiver's key must be among them",
        },
    },
}
SCHEMA: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "fusion",
    "description": "Which operators should run as one component (Guo and Zhou 2017).",
    "type": "object",
    "required": ["algorithm", "operators", "streams"],
    "additionalProperties": False,
    "properties": {
        "algorithm": {
            "enum": list(ALGORITHMS),
            "description": "mwsc is exact where it can be; greedy is fast; none fuses nothing",
        },
        "operators": {"type": "array", "items": _OPERATOR, "minItems": 1},
        "streams": {"type": "array", "items": _STREAM},
        "beta": {
            "type": "number",
            "exclusiveMinimum": 0,
            "description": "most rows of state a component may move over all windows",
        },
        "capacity": {
            "type": "number",
            "exclusiveMinimum": 0,
            "description": "rows that one instance takes in a window; without it, an instance "
            "would hold four key groups if all operators were one component",
        },
        "tolerance": {
            "type": "number",
            "minimum": 0,
            "maximum": 10,
            "default": TOLERANCE,
            "description": "how far an instance may be from the mean load, as a share of it",
        },
        "max_component_size": {
            "type": "integer",
            "minimum": 1,
            "description": "most operators in a component",
        },
    },
}


def advise(document: Document) -> dict[str, Any]:
    """The plan of a checked document; raises InvalidInput for what the schema cannot say."""
    operators = [_operator(f"operators[{n}]", o) for n, o in enumerate(document["operators"])]
    streams = [_stream(f"streams[{n}]", s) for n, s in enumerate(document["streams"])]
    _check_columns(document["streams"], {o.name: o.key for o in operators})
    limits = FusionLimits(
        beta=_finite("beta", document["beta"]) if "beta" in document else None,
        max_component_size=_whole(document.get("max_component_size"), len(operators)),
    )
    graph = operator_graph(operators, streams)
    capacity = _finite("capacity", document["capacity"]) if "capacity" in document else None
    costs = Costs(graph, rule_for(graph, capacity, float(document.get("tolerance", TOLERANCE))))
    decision = decide_fusion(costs, document["algorithm"], limits)
    plan = decision.plan
    answer: dict[str, Any] = {
        "components": [
            {
                "operators": list(component.operators),
                "key": list(component.key),
                "adaptation_cost": component.adaptation_cost,
            }
            for component in plan.components
        ],
        "communication_cost": plan.communication_cost,
        "adaptation_cost": plan.adaptation_cost,
        "cost": plan.cost,
    }
    if plan.lower_bound is not None:
        answer["lower_bound"] = plan.lower_bound
    answer["reasons"] = list(decision.reasons)
    if decision.infeasible is not None:
        answer["infeasible"] = decision.infeasible
    return answer


def _operator(field: str, given: Mapping[str, Any]) -> OperatorStatistics:
    state = _histogram(f"{field}.state", given["state"]) if "state" in given else None
    exact = bool(given.get("exact", False))
    if exact and not given["key"]:
        raise InvalidInput(f"{field}.exact is true, but {field}.key is null; name its columns.")
    return OperatorStatistics(given["name"], tuple(given["key"] or ()), state, exact=exact)


def _stream(field: str, given: Mapping[str, Any]) -> StreamStatistics:
    load = given["load"]
    rows: Floats | float
    if isinstance(load, list | tuple):
        rows = _histogram(f"{field}.load", load)
    else:
        rows = _finite(f"{field}.load", load)
    return StreamStatistics(given["from"], given["to"], rows)


def _histogram(field: str, rows: Sequence[Sequence[float]]) -> Floats:
    for number, window in enumerate(rows):
        if len(window) != len(rows[0]):
            raise InvalidInput(
                f"{field}[{number}] has {len(window)} key groups but {field}[0] has "
                f"{len(rows[0])}; every window must have the same."
            )
    return np.array([[_finite(field, value) for value in window] for window in rows])


def _finite(field: str, value: float) -> float:
    if not -1e300 < value < 1e300:
        raise InvalidInput(f"{field} is {str(value)[:30]}; give a finite number.")
    return float(value)


def _whole(value: float | None, operators: int) -> int | None:
    # JSON Schema takes 3.0 for an integer; more than all operators is no limit.
    return None if value is None or value >= operators else int(value)


def _check_columns(
    streams: Sequence[Mapping[str, Any]], keys: Mapping[str, tuple[str, ...]]
) -> None:
    for number, stream in enumerate(streams):
        if "columns" not in stream:
            continue
        for name in keys.get(stream["to"], ()):
            if name not in stream["columns"]:
                raise InvalidInput(
                    f"key of operator {stream['to']!r} names {name!r}, which is not a column of "
                    f"streams[{number}]; its columns: {', '.join(stream['columns'])}."
                )
