"""Forecasters by name, and those of users by where they are."""

from collections.abc import Mapping
from importlib import import_module

from penstock.errors import InvalidInput
from penstock.forecast.forecaster import Forecaster, LastRate
from penstock.forecast.holt import Holt

FORECASTERS: Mapping[str, Forecaster] = {"holt": Holt(), "last": LastRate()}


def forecaster_named(name: str) -> Forecaster:
    """The forecaster of a name, or one made of a class written as package.module:Class."""
    if name in FORECASTERS:
        return FORECASTERS[name]
    module, _, made = name.partition(":")
    try:
        found = getattr(import_module(module), made)()
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        allowed = ", ".join(FORECASTERS)
        raise InvalidInput(
            f"forecaster is {name!r}; allowed: {allowed}, or package.module:Class of one's own "
            f"({error})."
        ) from error
    if not callable(getattr(found, "forecast", None)):
        raise InvalidInput(f"forecaster {name!r} has no method forecast(history, steps).")
    forecaster: Forecaster = found
    return forecaster
