"""Policies by name, and their options by policy."""

from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

from penstock.config.option import Option
from penstock.errors import InvalidInput
from penstock.scaling.policies.options import options_of

if TYPE_CHECKING:
    from penstock.scaling.policies.policy import ScalingPolicy

# Imported when they are first used, so that `penstock --help` can list their names and stay quick.
_HOMES = {
    "static": "static:Static",
    "incremental": "incremental:Incremental",
    "drs": "drs:Drs",
    "autoscale": "autoscale:Autoscale",
    "autoscale_plus": "autoscale_plus:AutoscalePlus",
    "ds2": "ds2:Ds2",
    "spark-dra": "spark_dra:SparkDra",
    "rlearn": "rlearn:Rlearn",
    "promise": "promise:Promise",
    "admission-led": "admission_led:AdmissionLed",
}


def names() -> tuple[str, ...]:
    """The names a policy can be chosen by."""
    return tuple(sorted(_HOMES))


def policy_class(name: str) -> type[Any]:
    """The class of a policy; a sentence when there is none of that name."""
    if name not in _HOMES:
        raise InvalidInput(f"policy is {name!r}; allowed: {', '.join(names())}.")
    module, _, wanted = _HOMES[name].partition(":")
    found = getattr(import_module(f"penstock.scaling.policies.{module}"), wanted)
    assert isinstance(found, type)
    return found


def policy_options(name: str) -> Mapping[str, Option]:
    """The options of a policy that can be written as text, by name.

    >>> list(policy_options("incremental"))
    ['min_ratio', 'max_ratio', 'step']
    """
    return {option.name: option for option in options_of(policy_class(name))}


def has_option(name: str, option: str) -> bool:
    """Whether a policy has such an option."""
    return any(one.name == option for one in fields(policy_class(name)) if one.init)


def read_policy_option(name: str, option: str, raw: object, label: str) -> Any:
    """The value of an option of a policy, or a sentence that says what is allowed."""
    known = policy_options(name)
    if option in known:
        return known[option].read(raw, label)
    if not has_option(name, option):
        listed = f"known: {', '.join(known)}" if known else "it has none"
        raise InvalidInput(f"{label} is not an option of {name}; {listed}.")
    wanted = _object_of(name, option)
    if not isinstance(raw, wanted):
        raise InvalidInput(f"{label} of {name} is {raw!r}; give a {wanted.__name__}, from Python.")
    return raw


def _object_of(name: str, option: str) -> type[Any]:
    """The class of an option that is an object and has no form as text."""
    made: Any = next(o for o in fields(policy_class(name)) if o.name == option).default_factory
    assert isinstance(made, type)
    return made


def policy(name: str, **options: Any) -> "ScalingPolicy":
    """The policy of that name with its options; a sentence when either is unknown.

    >>> policy("incremental", max_ratio=0.9).name
    'incremental'
    """
    made: ScalingPolicy = policy_class(name)(
        **{option: read_policy_option(name, option, raw, option) for option, raw in options.items()}
    )
    return made
