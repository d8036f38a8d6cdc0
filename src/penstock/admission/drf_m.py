"""DRF-M, delta rate forecasting with meta-data: the framework's own strategy.

Balkesen et al. 2013, s. 2.5.

As DRF, but where meta-data says what rate to expect at t+k, that rate takes the place of the
forecast: in the rise X^m_{t+k} - X_{t+1}, in what a lane must have room for, and in the order of
placement.
"""

from dataclasses import dataclass, field

from penstock.admission.problem import AdmissionProblem, Bools, Situation
from penstock.admission.strategy import KeepsAssignments, until_it_fits
from penstock.forecast.forecaster import Forecaster
from penstock.forecast.holt import Holt
from penstock.forecast.metadata import nothing_known
from penstock.forecast.outlook import Outlook, outlook


@dataclass(frozen=True)
class DeltaRateForecastMetadata(KeepsAssignments):
    """What is known overrides what is guessed."""

    forecaster: Forecaster = field(default_factory=Holt)
    name: str = "drf-m"

    def believe(self, problem: AdmissionProblem) -> Outlook:
        """Meta-data where it says something, forecasts elsewhere."""
        known = problem.metadata
        metadata = nothing_known(problem.streams) if known is None else known
        return outlook(
            problem.rates_per_s, problem.horizon, self.forecaster, metadata, problem.age_periods
        )

    def pick_streams(self, situation: Situation, overloaded: Bools) -> Bools:
        """In decreasing order of their rise."""
        return until_it_fits(situation, overloaded, situation.outlook.rise_per_s)
