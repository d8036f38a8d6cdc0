"""The form of `penstock advise admission` documents, as a JSON Schema."""

from penstock.admission.parallelism import HEADROOM
from penstock.admission.problem import ACCEPT_BELOW, HORIZON, OVERLOAD_BY
from penstock.admission.registry import STRATEGIES
from penstock.documents import Schema, object_schema
from penstock.forecast.metadata import TRANSITIONS
from penstock.forecast.named import FORECASTERS

_NAME = {"type": "string", "minLength": 1}
_RATE = {"type": "number", "minimum": 0, "maximum": 1e15}
_PERIODS = {"type": "number", "minimum": 0, "maximum": 1e9}
_LENGTH = {"type": "number", "exclusiveMinimum": 0, "maximum": 1e9}


_META = object_schema(
    {
        "expected_rate": {**_RATE, "description": "its average rate"},
        "least_rate": {**_RATE, "description": "never less than this"},
        "greatest_rate": {**_RATE, "description": "never more than this"},
        "period": {**_LENGTH, "description": "length of its cycle, in periods"},
        "phase": {**_PERIODS, "description": "how far into its cycle it was when it joined"},
        "burst": {**_PERIODS, "description": "length of the high part, first in a cycle"},
        "idle": {**_PERIODS, "description": "length of the low part"},
        "transition": {
            "enum": list(TRANSITIONS[1:]),
            "description": "between low and high at once, or gradually",
        },
        "slope": {
            "type": "number",
            "minimum": -1e15,
            "maximum": 1e15,
            "description": "change of its rate in a period",
        },
        "lifetime": {**_PERIODS, "description": "periods from joining to its end"},
    },
    [],
    "what is known beforehand; any subset, and only drf-m looks at it",
)
_LANE = object_schema(
    {
        "name": _NAME,
        "queue": {
            "type": "array",
            "maxItems": 10_000,
            "default": [],
            "items": _RATE,
            "description": "samples of its queue in rows, oldest first",
        },
    },
    ["name"],
    "an entry point that reads the streams assigned to it",
)
_STREAM = object_schema(
    {
        "name": _NAME,
        "lane": {
            "type": ["string", "null"],
            "default": None,
            "description": "the lane that reads it; null for a new stream",
        },
        "rates": {
            "type": "array",
            "maxItems": 10_000,
            "default": [],
            "items": {**_RATE, "type": ["number", "null"]},
            "description": "rows per s in each period, oldest first; null where not measured",
        },
        "meta": _META,
    },
    ["name"],
    "one external input",
)
_SECONDS = {"type": "number", "minimum": 0, "maximum": 1e9}
_COSTS = object_schema(
    {
        "query_s": {
            **_SECONDS, "minimum": 1e-12, "description": "seconds of a node for each row, c_op",
        },
        "merge_s": {
            **_SECONDS, "description": "seconds of a merge node for each row it gets, c_merge",
        },
        "query_node_rate": {
            **_RATE,
            "description": "rows per s that a query node passes on at most, C_op; without it, as "
            "many as it takes in",
        },
        "headroom": {
            "type": "number", "minimum": 0, "exclusiveMaximum": 1, "default": HEADROOM,
            "description": "share of a node not used for operators, H",
        },
    },
    ["query_s", "merge_s"],
    "measured costs of the query; the answer then has the query and merge nodes for the rates",
)  # fmt: skip
SCHEMA: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "penstock advise admission",
    **object_schema(
        {
            "strategy": {
                "enum": list(STRATEGIES),
                "description": "drf-m uses forecasts and meta-data, drf forecasts; ard, ari and "
                "par are baselines by last rates",
            },
            "forecaster": {
                "enum": [None, *FORECASTERS],
                "default": None,
                "description": "by which drf-m and drf foresee rates; null: holt",
            },
            "lane_capacity": {
                "type": "number",
                "minimum": 1e-9,
                "maximum": 1e15,
                "description": "rows per s that one lane can read",
            },
            "horizon": {
                "type": "integer",
                "minimum": 1,
                "maximum": 10_000,
                "default": HORIZON,
                "description": "periods ahead for which lanes must have room (k)",
            },
            "latency_bound_s": {"type": "number", "minimum": 1e-9, "maximum": 1e9},
            "costs": _COSTS,
            "lanes": {"type": "array", "maxItems": 100_000, "items": _LANE},
            "streams": {"type": "array", "maxItems": 2_000_000, "items": _STREAM},
            "accept_below": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": 1,
                "default": ACCEPT_BELOW,
                "description": "share of its capacity to which a lane is filled",
            },
            "overload_by": {
                "enum": list(OVERLOAD_BY),
                "default": "either",
                "description": "a lane is overloaded when its queue is late or its streams need "
                "more than it has; or only when its queue is late",
            },
            "drain_below": {
                "type": ["number", "null"],
                "exclusiveMinimum": 0,
                "maximum": 1,
                "default": None,
                "description": "empty lanes when the rest is then at most so full; null: never",
            },
        },
        ["strategy", "lane_capacity", "latency_bound_s", "lanes", "streams"],
        "Streams with the rates measured and what is known of them; the answer says which lane "
        "reads which stream.",
    ),
}
