"""The options of a policy: the fields of its dataclass, each with a description and a range."""

import math
from dataclasses import MISSING, Field, field, fields
from typing import Any, get_args

from penstock.config.option import Kind, Option


def option(
    default: float | str | None,
    description: str,
    *,
    least: float = -math.inf,
    greatest: float = math.inf,
    choices: tuple[str, ...] = (),
    off: float | str | None = "never",
    shown: str | None = None,
) -> Any:
    """A field of a policy that users may set.

    `off` is the value that turns it off, where one does; `shown` says in words what a default comes
    to that depends on something else.
    """
    found = {
        "description": description, "least": least, "greatest": greatest, "choices": choices,
        "off": off, "shown": shown,
    }  # fmt: skip
    return field(default=default, metadata=found)


def options_of(policy: type[Any]) -> tuple[Option, ...]:
    """The options of a policy by the class it is made of."""
    return tuple(
        _option(one) for one in fields(policy) if one.init and "description" in one.metadata
    )


def _option(one: "Field[Any]") -> Option:
    about = one.metadata
    off = about["off"]
    can_be_off = off != "never"
    assert one.default is not MISSING
    return Option(
        one.name,
        _kind(one),
        about["shown"] or _shown(one.name, one.default, can_be_off, off),
        about["description"],
        about["least"],
        about["greatest"],
        about["choices"],
        can_be_off,
        off if can_be_off else None,
    )


def _kind(one: "Field[Any]") -> Kind:
    """By its default, or where that is None by what else it may be."""
    kinds = get_args(one.type) if one.default is None else (type(one.default),)
    if bool in kinds:
        return "switch"
    if str in kinds:
        return "choice"
    if int in kinds:
        return "integer"
    return "duration" if one.name.endswith("_s") else "number"


def _shown(name: str, default: Any, can_be_off: bool, off: object) -> str:
    if can_be_off and default == off:
        return "off"
    if isinstance(default, float):
        return f"{default:g}s" if name.endswith("_s") else f"{default:g}"
    return str(default).lower()
