"""PAR, plain average rate: bin packing from scratch at every period.

Balkesen et al. 2013, s. 6.1.2.

All streams are moveable and all lanes count as empty; rates are those of the last period. Near
the fewest lanes, and nearly every stream is redirected.
"""

from dataclasses import dataclass

import numpy as np

from penstock.admission.problem import AdmissionProblem, Bools, Situation
from penstock.forecast.forecaster import LastRate
from penstock.forecast.outlook import Outlook, outlook
from penstock.model.observation import Floats


@dataclass(frozen=True)
class PlainAverageRate:
    """Everything anew, by last rates."""

    name: str = "par"
    keeps_assignments: bool = False

    def believe(self, problem: AdmissionProblem) -> Outlook:
        """The rates of the last period."""
        return outlook(problem.rates_per_s, 1, LastRate())

    def is_overloaded(self, situation: Situation) -> Bools:
        """Every lane gives its streams away."""
        return np.ones(situation.problem.lanes, dtype=bool)

    def pick_streams(self, situation: Situation, overloaded: Bools) -> Bools:
        """All of them."""
        return np.append(overloaded, False)[situation.problem.lane]

    def accepts_streams(self, situation: Situation) -> Bools:
        """Every lane."""
        return np.ones(situation.problem.lanes, dtype=bool)

    def placement_order(self, situation: Situation) -> Floats:
        """Largest need first."""
        return situation.need_per_s
