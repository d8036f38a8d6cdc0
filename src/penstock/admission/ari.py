"""ARI, average rate increasing: overloaded lanes give their slowest first.

Balkesen et al. 2013, s. 6.1.2.
"""

from dataclasses import dataclass

from penstock.admission.problem import AdmissionProblem, Bools, Situation
from penstock.admission.strategy import KeepsAssignments, until_it_fits
from penstock.forecast.forecaster import LastRate
from penstock.forecast.outlook import Outlook, outlook


@dataclass(frozen=True)
class AverageRateIncreasing(KeepsAssignments):
    """Slow streams leave first, so many must leave."""

    name: str = "ari"

    def believe(self, problem: AdmissionProblem) -> Outlook:
        """The rates of the last period."""
        return outlook(problem.rates_per_s, 1, LastRate())

    def pick_streams(self, situation: Situation, overloaded: Bools) -> Bools:
        """In increasing order of rate."""
        return until_it_fits(situation, overloaded, -situation.outlook.needed_rate_per_s)
