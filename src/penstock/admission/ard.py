"""ARD, average rate decreasing: overloaded lanes give their fastest first.

Balkesen et al. 2013, s. 6.1.2.
"""

from dataclasses import dataclass

from penstock.admission.problem import AdmissionProblem, Bools, Situation
from penstock.admission.strategy import KeepsAssignments, until_it_fits
from penstock.forecast.forecaster import LastRate
from penstock.forecast.outlook import Outlook, outlook


@dataclass(frozen=True)
class AverageRateDecreasing(KeepsAssignments):
    """Fast streams leave first, so few must leave."""

    name: str = "ard"

    def believe(self, problem: AdmissionProblem) -> Outlook:
        """The rates of the last period."""
        return outlook(problem.rates_per_s, 1, LastRate())

    def pick_streams(self, situation: Situation, overloaded: Bools) -> Bools:
        """In decreasing order of rate."""
        return until_it_fits(situation, overloaded, situation.outlook.needed_rate_per_s)
