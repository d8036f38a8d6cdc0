"""Strategies by name."""

from collections.abc import Mapping
from dataclasses import replace

from penstock.admission.ard import AverageRateDecreasing
from penstock.admission.ari import AverageRateIncreasing
from penstock.admission.drf import DeltaRateForecast
from penstock.admission.drf_m import DeltaRateForecastMetadata
from penstock.admission.par import PlainAverageRate
from penstock.admission.strategy import Strategy
from penstock.errors import InvalidInput
from penstock.forecast.named import forecaster_named

STRATEGIES: Mapping[str, Strategy] = {
    strategy.name: strategy
    for strategy in (
        DeltaRateForecastMetadata(),
        DeltaRateForecast(),
        AverageRateDecreasing(),
        AverageRateIncreasing(),
        PlainAverageRate(),
    )
}


FORECASTING = (DeltaRateForecast, DeltaRateForecastMetadata)


def strategy_named(name: str, forecaster: str | None = None) -> Strategy:
    """The strategy of that name, by a forecaster other than its own if one is named."""
    if name not in STRATEGIES:
        raise InvalidInput(f"strategy is {name!r}; allowed: {', '.join(STRATEGIES)}.")
    strategy = STRATEGIES[name]
    if forecaster is None:
        return strategy
    if not isinstance(strategy, FORECASTING):
        raise InvalidInput(
            f"forecaster is {forecaster!r}, but strategy {name!r} forecasts nothing; leave it out, "
            "or choose drf-m or drf."
        )
    return replace(strategy, forecaster=forecaster_named(forecaster))
