"""DRF, delta rate forecasting (Balkesen et al. 2013, s. 2.5 without meta-data, s. 6.1.2).

Streams leave an overloaded lane in decreasing order of their expected rise, X_{t+k} - X_{t+1},
until what the rest will need fits. Rates are forecasts by Holt's linear trend.

Differs from Balkesen et al. 2013, s. 2.5: a stream counts with the larger of its forecasts for t+1
and t+k, so that capacity holds all the way to the horizon; the paper leaves open which it sums.
"""

from dataclasses import dataclass, field

from penstock.admission.problem import AdmissionProblem, Bools, Situation
from penstock.admission.strategy import KeepsAssignments, until_it_fits
from penstock.forecast.forecaster import Forecaster
from penstock.forecast.holt import Holt
from penstock.forecast.outlook import Outlook, outlook


@dataclass(frozen=True)
class DeltaRateForecast(KeepsAssignments):
    """The steepest leave first; any forecaster may stand in for Holt's."""

    forecaster: Forecaster = field(default_factory=Holt)
    name: str = "drf"

    def believe(self, problem: AdmissionProblem) -> Outlook:
        """Forecasts over the horizon; meta-data is not looked at."""
        return outlook(problem.rates_per_s, problem.horizon, self.forecaster)

    def pick_streams(self, situation: Situation, overloaded: Bools) -> Bools:
        """In decreasing order of their rise."""
        return until_it_fits(situation, overloaded, situation.outlook.rise_per_s)
