"""Policies by name."""

import math
from dataclasses import MISSING, Field, fields
from typing import Any

from penstock.errors import InvalidInput
from penstock.scaling.policies.autoscale import Autoscale
from penstock.scaling.policies.autoscale_plus import AutoscalePlus
from penstock.scaling.policies.drs import Drs
from penstock.scaling.policies.ds2 import Ds2
from penstock.scaling.policies.incremental import Incremental
from penstock.scaling.policies.knowledge import Knowledge
from penstock.scaling.policies.policy import ScalingPolicy
from penstock.scaling.policies.rlearn import Rlearn
from penstock.scaling.policies.spark_dra import SparkDra
from penstock.scaling.policies.static import Static

POLICIES: dict[str, type[Any]] = {
    "static": Static,
    "incremental": Incremental,
    "drs": Drs,
    "autoscale": Autoscale,
    "autoscale_plus": AutoscalePlus,
    "ds2": Ds2,
    "spark-dra": SparkDra,
    "rlearn": Rlearn,
}

_KINDS = {bool: "true or false", str: "a text", int: "a whole number"}


def names() -> tuple[str, ...]:
    """The names a policy can be chosen by."""
    return tuple(sorted(POLICIES))


def policy(name: str, **options: Any) -> ScalingPolicy:
    """The policy of that name with its options; a sentence when either is unknown.

    >>> policy("incremental", max_ratio=0.9).name
    'incremental'
    """
    if name not in POLICIES:
        raise InvalidInput(f"policy is {name!r}; known: {', '.join(names())}.")
    kind = POLICIES[name]
    known = {field.name: field for field in fields(kind) if field.init}
    for option, value in options.items():
        if option not in known:
            allowed = ", ".join(known) or "none"
            raise InvalidInput(f"policy {name} has no option {option!r}; known: {allowed}.")
        _check(name, known[option], value)
    made: ScalingPolicy = kind(**options)
    return made


def _check(name: str, field: "Field[Any]", value: Any) -> None:
    """An option must be of the kind of its default; one without default value may be None."""
    if field.default is MISSING:
        if not isinstance(value, Knowledge):
            raise InvalidInput(f"option {field.name} of policy {name} must be a Knowledge.")
        return
    allowed = _KINDS.get(type(field.default), "a number")
    number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = {
        "true or false": isinstance(value, bool),
        "a text": isinstance(value, str),
        "a whole number": number and isinstance(value, int),
        "a number": number and math.isfinite(value),
    }[allowed] or (value is None and field.default is None)
    if not fits:
        raise InvalidInput(
            f"option {field.name} of policy {name} is {value!r}; it must be {allowed}."
        )
