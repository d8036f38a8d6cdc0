"""The JSON Schemas of the documents `penstock advise scaling` takes, one per policy."""

from typing import Any

from penstock.documents import Schema
from penstock.scaling.documents.periods import DS2, PROMISE

MOST_PROCESSORS = 10_000_000
_ROWS = {"type": "number", "minimum": 0, "maximum": 1e15}
_NAME = {"type": "string", "minLength": 1}
_RATE = {"type": "number", "minimum": 0, "maximum": 1e12}
_SERVICE_RATE = {
    "type": "number",
    "minimum": 1e-9,
    "maximum": 1e12,
    "description": "rows a second one processor can serve",
}
_COUNT = {"type": "integer", "minimum": 1, "maximum": MOST_PROCESSORS}
_SHARE = {"type": "number", "minimum": 0, "maximum": 1}
_SERIES = {"type": "array", "minItems": 1, "maxItems": 10_000, "items": _ROWS}


def _object(properties: dict[str, Any], required: list[str], description: str = "") -> Schema:
    form: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    if description:
        form["description"] = description
    return {**form, "additionalProperties": False}


def _operators(properties: dict[str, Any], required: list[str]) -> Schema:
    return {"type": "array", "minItems": 1, "items": _object(properties, required)}


INCREMENTAL = _object(
    {
        "policy": {"const": "incremental"},
        "operators": _operators(
            {
                "name": _NAME,
                "arrival_rate": {**_RATE, "description": "rows a second that arrive"},
                "service_rate": _SERVICE_RATE,
                "parallelism": _COUNT,
            },
            ["name", "arrival_rate", "service_rate", "parallelism"],
        ),
        "thresholds": _object(
            {
                "min": {"type": "number", "minimum": 0, "maximum": 1e6},
                "max": {"type": "number", "exclusiveMinimum": 0, "maximum": 1e6},
            },
            ["min", "max"],
            "scale in below min, out above max, of arrival rate over capacity; min below max",
        ),
    },
    ["policy", "operators", "thresholds"],
    "One processor more or less by thresholds on arrival rate over capacity.",
)

_SCV = {
    "type": "number",
    "minimum": 0,
    "maximum": 1e6,
    "default": 1,
    "description": "variance over squared mean; 1 is exponential",
}
_OVERHEAD = {"type": "number", "minimum": 0, "maximum": 1e6}

DRS = _object(
    {
        "policy": {"const": "drs"},
        "model": {
            "enum": ["mmk", "gigk", "microbatch"],
            "default": "mmk",
            "description": "queues of components run apart, or micro-batches run together",
        },
        "operators": _operators(
            {
                "name": _NAME,
                "arrival_rate": {
                    **_RATE,
                    "description": "rows a second that arrive, from outside and from upstreams; "
                    "not needed with routes",
                },
                "entry_rate": {
                    **_RATE,
                    "description": "with routes: rows a second that come from outside",
                },
                "service_rate": _SERVICE_RATE,
                "arrival_scv": _SCV,
                "service_scv": _SCV,
                "parallelism": {**_COUNT, "description": "what runs now, for the reasons"},
            },
            ["name", "service_rate"],
        ),
        "external_rate": {
            **_RATE,
            "description": "rows a second that enter the topology; latency is of these",
        },
        "routes": {
            "type": "array",
            "description": "rows sent along each edge for each row served; loops allowed",
            "items": _object(
                {
                    "from": _NAME,
                    "to": _NAME,
                    "ratio": {"type": "number", "minimum": 0, "maximum": 1e6},
                },
                ["from", "to", "ratio"],
            ),
        },
        "max_processors": {**_COUNT, "description": "the lowest latency with at most so many"},
        "max_latency_s": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": 1e9,
            "description": "the fewest processors whose mean latency is at most this",
        },
        "speeds": {
            "type": "array",
            "minItems": 1,
            "maxItems": 10_000,
            "items": {"type": "number", "minimum": 1e-6, "maximum": 1e6},
            "description": "processors of unequal speed, of which max_processors may be used; "
            "mmk and gigk",
        },
        "batch_overhead_s": {
            "description": "fixed cost of a micro-batch: a number, or its growth per processor",
            "anyOf": [
                _OVERHEAD,
                _object({"fixed": _OVERHEAD, "per_processor": _OVERHEAD}, ["fixed"]),
            ],
        },
    },
    ["policy", "operators"],
    "The best split of max_processors, or the fewest processors for max_latency_s.",
)


_SHARED = _object(
    {"name": _NAME, "share": {"type": "number", "exclusiveMinimum": 0, "maximum": 1}},
    ["name", "share"],
    "an upstream that sends only a share of its rows here",
)


def _windowed(policy: str, options: dict[str, Any], cpu: dict[str, Any], text: str) -> Schema:
    """The form of a policy that looks at windows of measurements."""
    return _object(
        {
            "policy": {"const": policy},
            "period_s": {
                "type": "number",
                "minimum": 1e-3,
                "maximum": 1e6,
                "description": "time between two measurements",
            },
            "combine": {"enum": ["max", "min"], "default": "max"},
            "max_processors": {**_COUNT, "description": "in all"},
            "operators": _operators(
                {
                    "name": _NAME,
                    "upstreams": {
                        "type": "array",
                        "items": {"anyOf": [_NAME, _SHARED]},
                        "default": [],
                        "description": "who sends it rows: a name alone for all they emit, or a "
                        "name and a share",
                    },
                    "received": {**_SERIES, "description": "rows in each interval, oldest first"},
                    "processed": {**_SERIES, "description": "rows worked through in each interval"},
                    "emitted": {**_SERIES, "description": "rows sent on in each interval"},
                    "pending": {**_ROWS, "default": 0, "description": "rows that wait now"},
                    "latency_s": {
                        "description": "processor-seconds a row, without waiting: one, or a series",
                        "anyOf": [
                            {"type": "number", "minimum": 0, "maximum": 1e6},
                            {**_SERIES, "items": {"type": "number", "minimum": 0, "maximum": 1e6}},
                        ],
                    },
                    "task_latency_s": {
                        "type": "array",
                        "minItems": 1,
                        "maxItems": 10_000,
                        "items": {"type": "number", "minimum": 0, "maximum": 1e6},
                        "description": "instead of latency_s, that of each task: autoscale goes by "
                        "the slowest, autoscale_plus by the mean",
                    },
                    "parallelism": _COUNT,
                    "max_parallelism": _COUNT,
                    **cpu,
                },
                ["name", "received", "parallelism"],
            ),
            **options,
        },
        ["policy", "period_s", "operators"],
        text,
    )


_RESERVED = {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
_CPU = _object(
    {
        "used": _SHARE,
        "reserved": _RESERVED,
        "others_used": {"type": "array", "items": _SHARE, "maxItems": 10_000},
    },
    ["used", "others_used"],
)

AUTOSCALE = _windowed(
    "autoscale",
    {
        "variant": {"enum": ["gal", "critical", "local", "straight"], "default": "gal"},
        "theta_min": {**_SHARE, "default": 0.3},
        "theta_max": {**_SHARE, "default": 0.8},
    },
    {},
    "Degrees from linear trends of the input and what upstreams will emit.",
)
AUTOSCALE_PLUS = _windowed(
    "autoscale_plus",
    {
        "alpha": {**_SHARE, "default": 0.8, "description": "margin on CPU"},
        "beta": {**_SHARE, "default": 0.8, "description": "lower end of the working interval"},
        "cpu_reservation": {**_SHARE, "default": 1.0},
    },
    {
        "cpu": {
            "anyOf": [_CPU, {"type": "array", "items": _CPU, "maxItems": 10_000}],
            "description": "of the CPU that all its tasks are on, or of that of each task: its "
            "share and those of the tasks beside it",
        },
        "cpu_reservation": {
            **_RESERVED,
            "description": "share of a CPU reserved for each of its tasks",
        },
    },
    "Degrees from the best of three trends and the CPU tasks can use beside others.",
)

FORMS: dict[str, Schema] = {
    "incremental": INCREMENTAL,
    "drs": DRS,
    "autoscale": AUTOSCALE,
    "autoscale_plus": AUTOSCALE_PLUS,
    "ds2": DS2,
    "promise": PROMISE,
}
