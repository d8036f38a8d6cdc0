"""Strategies by name."""

from collections.abc import Mapping

from penstock.admission.ard import AverageRateDecreasing
from penstock.admission.ari import AverageRateIncreasing
from penstock.admission.drf import DeltaRateForecast
from penstock.admission.drf_m import DeltaRateForecastMetadata
from penstock.admission.par import PlainAverageRate
from penstock.admission.strategy import Strategy
from penstock.errors import InvalidInput

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


def strategy_named(name: str) -> Strategy:
    """The strategy of that name, or a sentence with the names there are."""
    if name not in STRATEGIES:
        raise InvalidInput(f"strategy is {name!r}; allowed: {', '.join(STRATEGIES)}.")
    return STRATEGIES[name]
