"""The form of `penstock advise sharing` documents, as a JSON Schema."""

from typing import Any

from penstock.documents import Schema, object_schema
from penstock.model.decision import USUAL_SHARE
from penstock.sharing.arbiter import MARGIN

MOST_PROCESSORS = 1_000_000
MOST_TOPOLOGIES = 10_000
_SECONDS = {"type": "number", "minimum": 0, "maximum": 1e6}


def _count(least: int, description: str) -> dict[str, Any]:
    return {
        "type": "integer", "minimum": least, "maximum": MOST_PROCESSORS, "description": description,
    }  # fmt: skip


_NAME = {"type": "string", "minLength": 1}
_OVERHEAD = object_schema(
    {
        "fixed_s": {**_SECONDS, "description": "seconds of every batch"},
        "per_processor_s": {
            **_SECONDS, "default": 0, "description": "seconds more for each processor",
        },
        "work_s": {
            **_SECONDS, "default": 0,
            "description": "task seconds of a batch that no row causes, divided among processors",
        },
    },
    ["fixed_s"],
    "O(K) = fixed_s + per_processor_s K + work_s / K, what a batch on K processors takes beside "
    "its rows",
)  # fmt: skip
_TOPOLOGY = object_schema(
    {
        "name": _NAME,
        "weight": {
            "type": "number", "minimum": 0.001, "maximum": 10_000, "default": 1,
            "description": "what its promise counts beside the others'",
        },
        "min": {**_count(1, "processors that it has in any case"), "default": 1},
        "max": _count(1, "processors that it may have; without it, all of the cluster's"),
        "max_latency_s": {
            "type": "number", "minimum": 1e-6, "maximum": 1e6, "description": "its bound",
        },
        "share": {
            "type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": USUAL_SHARE,
            "description": "of its results that must keep the bound",
        },
        "load": {
            "type": "number", "minimum": 0, "maximum": 1e9,
            "description": "processors that its rows keep busy: rows a second times "
            "processor-seconds of a row",
        },
        "overhead": _OVERHEAD,
        "interval_s": {
            **_SECONDS, "default": 0,
            "description": "from the start of one batch to the next; 0: back to back",
        },
    },
    ["name", "max_latency_s", "load", "overhead"],
    "a topology with its promise, its load and what its batches cost",
)  # fmt: skip
_PREVIOUS = object_schema(
    {
        "processors": {
            "type": "object", "maxProperties": MOST_TOPOLOGIES,
            "additionalProperties": _count(0, "processors that it had"),
        },
        "kept": {"type": "array", "maxItems": MOST_TOPOLOGIES, "items": _NAME},
    },
    ["processors"],
    "the division so far, as an earlier answer has it; what is nearly as good stays",
)  # fmt: skip
SCHEMA: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "penstock advise sharing",
    **object_schema(
        {
            "processors": _count(1, "of the cluster"),
            "slots": {**_count(1, "processors of an executor"), "default": 1},
            "topologies": {
                "type": "array", "minItems": 1, "maxItems": MOST_TOPOLOGIES, "items": _TOPOLOGY,
            },
            "previous": _PREVIOUS,
            "margin": {
                "type": "number", "minimum": 0, "maximum": 1, "default": MARGIN,
                "description": "by which another division must be better than the previous one",
            },
        },
        ["processors", "topologies"],
        "Topologies with their promises and loads; the answer divides the processors of one "
        "cluster among them.",
    ),
}  # fmt: skip
