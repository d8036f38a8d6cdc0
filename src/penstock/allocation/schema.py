"""The form of `penstock advise allocation` documents, as a JSON Schema."""

from penstock.allocation.albic import AlbicOptions
from penstock.allocation.assignment import OBJECTIVES
from penstock.allocation.policies import POLICIES
from penstock.documents import Schema, object_schema

_ALBIC = AlbicOptions()
_NAME = {"type": "string", "minLength": 1}
_AMOUNT = {"type": "number", "minimum": 0, "maximum": 1e12}


_RESOURCES = {"type": "object", "additionalProperties": _AMOUNT, "maxProperties": 16}

_NODE = object_schema(
    {
        "name": _NAME,
        "capacity": {
            "type": "number",
            "minimum": 1e-6,
            "maximum": 1e6,
            "default": 1,
            "description": "relative to a node of capacity 1, which carries a load of 100",
        },
        "draining": {
            "type": "boolean",
            "default": False,
            "description": "to be emptied and removed; receives nothing",
        },
        "resources": {
            **_RESOURCES,
            "description": "limits of further resources; one not named here is unlimited",
        },
    },
    ["name"],
    "a node that holds key groups",
)

_KEY_GROUP = object_schema(
    {
        "name": _NAME,
        "operator": {"type": "string", "default": "", "description": "whose key group it is"},
        "load": {**_AMOUNT, "description": "percentage points of a node of capacity 1"},
        "state_bytes": {
            "type": "number",
            "minimum": 0,
            "maximum": 1e18,
            "default": 0,
            "description": "size of its state: what a move costs under max_migration_cost",
        },
        "node": {
            "type": ["string", "null"],
            "default": None,
            "description": "where it lives now; null when its node was lost or it is new",
        },
        "resources": {**_RESOURCES, "description": "what it uses of further resources"},
    },
    ["name", "load"],
    "one partition of an operator's state",
)

SCHEMA: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "penstock advise allocation",
    **object_schema(
        {
            "policy": {
                "enum": list(POLICIES),
                "description": "milp balances, albic also collocates, resource-aware keeps to "
                "reservations of cpu and memory, the others are baselines",
            },
            "objective": {
                "enum": list(OBJECTIVES),
                "default": "resource",
                "description": "of the policy resource-aware: even usage of processors, least "
                "traffic, or least traffic on few nodes. Key groups reserve the resources they "
                "name; without one called cpu their load is what they reserve of max_load",
            },
            "nodes": {"type": "array", "minItems": 1, "maxItems": 5000, "items": _NODE},
            "key_groups": {"type": "array", "maxItems": 200_000, "items": _KEY_GROUP},
            "traffic": {
                "type": "array",
                "maxItems": 2_000_000,
                "default": [],
                "items": object_schema(
                    {"from": _NAME, "to": _NAME, "rate": _AMOUNT},
                    ["from", "to", "rate"],
                    "what one key group sends to another, in any one unit",
                ),
            },
            "max_migrations": {
                "type": "integer",
                "minimum": 0,
                "maximum": 10**9,
                "description": "key groups that may move in this round",
            },
            "max_migration_cost": {
                "type": "number",
                "minimum": 0,
                "maximum": 1e18,
                "description": "bytes of state that may move in this round",
            },
            "max_load": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": 1e12,
                "default": 100,
                "description": "load at which a node of capacity 1 is full",
            },
            "time_limit_s": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": 600,
                "default": 2,
                "description": "how long to search, counted as work so that answers repeat",
            },
            "albic": {
                **object_schema(
                    {
                        "max_load_distance": {
                            **_AMOUNT,
                            "default": _ALBIC.max_load_distance,
                            "description": "maxLD: distance above which less is collocated",
                        },
                        "max_partition_load": {
                            **_AMOUNT,
                            "default": _ALBIC.max_partition_load,
                            "description": "maxPL: load of key groups that move as one, on a node "
                            "of capacity 1; one pair may always have more",
                        },
                        "partition_load_step": {
                            "type": "number",
                            "minimum": 0.001,
                            "maximum": 1e12,
                            "default": _ALBIC.partition_load_step,
                            "description": "stepPL: by how much maxPL is lowered",
                        },
                        "pairs": {
                            "type": "integer",
                            "minimum": 1,
                            "maximum": 10**6,
                            "default": _ALBIC.pairs_per_round,
                            "description": "most pairs put together in this round",
                        },
                        "fewer_pairs": {
                            "type": "boolean",
                            "default": _ALBIC.fewer_pairs,
                            "description": "join fewer pairs before maxPL is lowered",
                        },
                    },
                    [],
                    "options of the policy albic",
                ),
                "default": {},
            },
            "seed": {"type": "integer", "minimum": 0, "maximum": 2**63 - 1, "default": 0},
        },
        ["policy", "nodes", "key_groups"],
        "Key groups with their load and where they live; the answer says where each should live. "
        "Without max_migrations and max_migration_cost any number may move. cola and potc place "
        "anew and know no budget.",
    ),
}
