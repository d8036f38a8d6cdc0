"""Policies by name."""

from dataclasses import fields
from typing import Any

from penstock.errors import InvalidInput
from penstock.scaling.autoscale import Autoscale
from penstock.scaling.autoscale_plus import AutoscalePlus
from penstock.scaling.drs import Drs
from penstock.scaling.ds2 import Ds2
from penstock.scaling.incremental import Incremental
from penstock.scaling.policy import ScalingPolicy
from penstock.scaling.rlearn import Rlearn
from penstock.scaling.spark_dra import SparkDra
from penstock.scaling.static import Static

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
    known = [field.name for field in fields(kind) if field.init]
    for option in options:
        if option not in known:
            allowed = ", ".join(known) or "none"
            raise InvalidInput(f"policy {name} has no option {option!r}; known: {allowed}.")
    try:
        made: ScalingPolicy = kind(**options)
    except (TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(f"the options of policy {name} are refused: {error}.") from error
    return made
